"""Tests of the workshop that ask a judge about the answer, too."""

from thinkingbox.common import Judge, TestContext

"""!
scenario: workshop
bot_instructions: Name the price whenever it changes.
"""


def check_records(x):
    found = x.effects["workshop"]
    assert found["result_db_hash"] == found["golden_db_hash"], "The records are not as they should be."


def check_answer(x, judge):
    for question in x.effects["workshop"].get("rubrics_yesno", []):
        assert judge.text_yesno(x.response, question), f"The judge says no: {question}"


def test_price_is_told(x: TestContext, judge: Judge):
    """!
    query: J-20 should have been done on Monday. Will you make it cheaper?
    user_context: "You are Noor Haddad, noor@example.com. You accept a reduction."
    init:
      workshop:
        data_patch:
          jobs:
            - {id: J-20, customer_id: C-2, bike: tandem, status: waiting, price: 90.0}
        golden_test_case:
          tool_interactions:
            - {tool: job_price, parameters: {job_id: J-20, action: reduce, amount: 10.0}}
        rubrics_yesno:
          - Does the message name the new price, 80.00?
    """
    check_records(x)
    check_answer(x, judge)


def test_chain(x: TestContext, judge: Judge):
    """!
    query: The chain of my touring bike skips, a new one for J-21 please. Ines
    user_context: "You are Ines Falk, ines@example.com. The bike has 11 speeds."
    init:
      workshop:
        data_patch:
          jobs:
            - {id: J-21, customer_id: C-1, bike: touring bike, status: open, price: 45.0}
        golden_test_case:
          tool_interactions:
            - {tool: list_parts, parameters: {name: chain}}
            - {tool: update_job, parameters: {job_id: J-21, status: waiting, tags: [out of stock]}}
    """
    check_records(x)
    check_answer(x, judge)
