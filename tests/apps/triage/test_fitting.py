"""The floors of the rules, on cases they were not chosen by: a wrong promise is worse than none."""

import pytest

from dialoom.apps.triage import DEFAULT_RULES, Case, CaseIndex, Ticket
from dialoom.apps.triage.rules import by_rules
from dialoom.rag import HashEmbedder

_ROWS = [
    (
        "S1",
        "account",
        "Two-factor code not accepted",
        "The six digit code of the authenticator app is refused at login.",
        "Set the clock of the phone to automatic.",
    ),
    (
        "S2",
        "billing",
        "Invoice with VAT number",
        "The invoice lacks our VAT number.",
        "We issue a corrected invoice today.",
    ),
    (
        "S3",
        "export",
        "Export to CSV is empty",
        "The CSV export of the report has no rows.",
        "Widen the date filter; exports follow it.",
    ),
    (
        "S4",
        "billing",
        "Cancel the subscription",
        "How do I cancel my subscription at the end of the month?",
        "Under Settings, Plan, choose cancel.",
    ),
    (
        "S5",
        "delivery",
        "快递一直没有更新",
        "物流信息三天没有更新，包裹不知道在哪里。",
        "我们已联系快递核实，两天内答复。",
    ),
    ("S6", "damage", "收到的杯子碎了", "打开包裹发现杯子碎了，要求补发。", "请拍照，我们今天补发。"),
    ("S7", "account", "忘记密码", "忘记密码，收不到重置邮件。", "请检查垃圾邮件箱。"),
    ("S8", "delivery", "修改收货地址", "下单后想修改收货地址。", "发货前可以修改。"),
]
CASES = [
    Case(id=number, category=category, title=title, text=text, resolution=resolution)
    for number, category, title, text, resolution in _ROWS
]
FITTING = [
    ("My authenticator code is always refused when I log in", "S1"),
    ("Please put our VAT number on the invoice", "S2"),
    ("CSV export has no rows in it", "S3"),
    ("The report I export is empty", "S3"),
    ("I want to cancel my subscription", "S4"),
    ("物流三天没动了，我的包裹到哪了", "S5"),
    ("快递信息一直不更新", "S5"),
    ("杯子收到的时候就碎了，请补发", "S6"),
    ("密码忘了，重置邮件收不到", "S7"),
    ("我想改一下收货地址", "S8"),
    ("地址写错了，能修改吗", "S8"),
]
TOO_FAR = ["2FA code does not work", "收到的盘子是碎的"]
"""A person sees that S1 and S6 fit; few of their letters are the same, and nothing is promised."""
STRANGE = [
    "hi",
    "Do you offer a student discount?",
    "The app is slow on my tablet",
    "Is there a dark mode?",
    "Who founded your company?",
    "I love the report",
    "Can I import data from Excel?",
    "My colleague left the company",
    "The login page looks great",
    "你好啊",
    "有优惠券吗",
    "你们支持花呗吗",
    "杯子多大",
    "发票可以开公司的吗",
    "客服电话是多少",
    "在吗",
    "The number of seats is wrong",
    "When is the webinar of this month?",
    "I was charged for nothing",
    "包裹很漂亮谢谢",
]


async def cited(text: str) -> list[str]:
    index = CaseIndex(CASES, HashEmbedder(), warn=print)
    (job,) = await index.jobs([Ticket(id="1", text=text)])
    found = [each.case for each in await index.search(job, 3)]
    return by_rules(job.ticket, found, sorted({each.category for each in CASES}), DEFAULT_RULES).citations


@pytest.mark.parametrize(("text", "case"), FITTING)
async def test_a_case_that_fits_is_cited(text: str, case: str) -> None:
    assert await cited(text) == [case]


@pytest.mark.parametrize("text", [*STRANGE, *TOO_FAR])
async def test_no_other_is(text: str) -> None:
    assert await cited(text) == []
