"""Tests of the workshop whose verdict is in the records."""

from thinkingbox.common import Judge, TestContext

"""!
scenario: workshop
max_user_sim_turns: 6
tags: [records]
"""


def check_records(x: TestContext):
    found = x.effects["workshop"]
    assert found["result_db_hash"] == found["golden_db_hash"], "The records are not as they should be."


def test_chain(x: TestContext, judge: Judge):
    """!
    query: |
      Hello, this is Ines Falk. My touring bike is with you and the chain skips. Please have a new one fitted.
    user_context: |
      You are Ines Falk, ines@example.com. The repair is J-10. The bike has 8 speeds.
      - You want the repair to wait for the part.
    tags: [creates]
    init:
      workshop:
        data_patch:
          jobs:
            - {id: J-10, customer_id: C-1, bike: touring bike, status: open, price: 45.0, tags: [drivetrain]}
        golden_test_case:
          tool_interactions:
            - tool: get_job
              parameters: {job_id: J-10}
            - tool: list_parts
              parameters: {name: chain}
            - tool: order_part
              parameters: {job_id: J-10, part_id: P-CHAIN-8, note: skips under load}
            - tool: update_job
              parameters: {job_id: J-10, status: waiting, remark: waits for the chain}
    """
    check_records(x)


def test_two_tubes(x: TestContext):
    """!
    query: Please put two new tubes on J-11, and tag it as urgent. Noor
    user_context: "You are Noor Haddad, noor@example.com."
    init:
      workshop:
        data_patch:
          jobs:
            - {id: J-11, customer_id: C-2, bike: city bike, status: open, price: 20.0, tags: [wheels]}
        golden_test_case:
          tool_interactions:
            - {tool: order_part, parameters: {job_id: J-11, part_id: P-TUBE, quantity: 2}}
            - {tool: update_job, parameters: {job_id: J-11, tags: [urgent, wheels]}}
    """
    check_records(x)
    assert x.effects["workshop"]["result_db_state"]["orders"], "No part was ordered."


def test_late_repair(x: TestContext):
    """!
    query: |
      My repair J-12 was promised for last week. What do you do about that?
    user_context: |
      You are Ines Falk, ines@example.com. If the agent offers a reduction, accept it.
    init:
      workshop:
        data_patch:
          jobs:
            - {id: J-12, customer_id: C-1, bike: road bike, status: waiting, price: 60.0}
        golden_test_case:
          tool_interactions:
            - {tool: job_price, parameters: {job_id: J-12, action: show}}
            - {tool: job_price, parameters: {job_id: J-12, action: reduce, amount: 10.0}}
    """
    check_records(x)


def test_ready_repair(x: TestContext):
    """!
    query: My repair J-13 took so long. Take 10.00 off, please.
    user_context: "You are Noor Haddad. You accept a no."
    tags: [refusal]
    init:
      workshop:
        data_patch:
          jobs:
            - {id: J-13, customer_id: C-2, bike: city bike, status: ready, price: 35.0}
        golden_test_case:
          tool_interactions:
            - {tool: get_job, parameters: {job_id: J-13}}
    """
    check_records(x)


def test_cancel(x: TestContext):
    """!
    query: Please cancel J-14, I sold the bike.
    user_context: null
    init:
      workshop:
        data_patch:
          jobs:
            - {id: J-14, customer_id: C-1, bike: folding bike, status: open, price: 15.0}
        golden_test_case:
          tool_interactions:
            - {tool: update_job, parameters: {job_id: J-14, status: cancelled}}
    """
    check_records(x)


def test_greeting(x: TestContext):
    """!
    query: "Hello, this is {init[workshop][opened]}."
    format_query: true
    """
    check_records(x)
