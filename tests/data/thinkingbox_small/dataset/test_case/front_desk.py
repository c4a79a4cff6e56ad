"""Tests at the front desk: fewer tools, a policy of its own, and something said before."""

"""!
scenario: front_desk
"""


def test_remark(x):
    """!
    query: The bell, too, please.
    history: bell:0:end
    user_context: "You are Wim de Boer. The repair is J-70."
    init:
      workshop:
        golden_test_case:
          tool_interactions:
            - {tool: update_job, parameters: {job_id: J-70, status: open, remark: "the bell, too"}}
    """
    found = x.effects["workshop"]
    assert found["result_db_hash"] == found["golden_db_hash"], "The records are not as they should be."


def test_fields(x):
    """!
    query: I come for J-70 tomorrow. Please tag it with tomorrow.
    user_context: "You are Wim de Boer."
    init:
      workshop:
        golden_test_case:
          tool_interactions:
            - {tool: update_job, parameters: {job_id: J-70, tags: [brakes, tomorrow]}}
    """
    job = x.effects["workshop"]["result_db_state"]["jobs"][0]
    assert sorted(job["tags"]) == ["brakes", "tomorrow"], f"The tags are {job['tags']}."
    return 1.0
