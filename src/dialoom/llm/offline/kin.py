"""Words that ask for one thing by different names: what "send back" asks, "return" answers."""

from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

from dialoom.llm.offline.words import terms

_MOST_ASKED = 256
_BETWEEN = 3
_ENGLISH = """
    cancel, call off | withdraw, stop
    send back, give back, bring back, take back, return | refund
    money back, get my money, reimburse, refund
    broken, damaged, defective, faulty, broke, crack | defect, fault
    guarantee, warranty
    covered, cover, insured
    extend, prolong, longer, extension, renew | extra, grow
    sick, ill, illness, unwell | doctor
    payday, wage, wages, pay day, paid, salary
    employee, employees, staff, worker, colleague, personnel
    discount, rebate, reduction, cheaper | percent, off, voucher
    delivery, shipping, dispatch, shipment, postage | carrier, parcel
    deliver, ship, dispatch
    parcel, package, box, packet
    late, delayed, delay, overdue
    id, identification, passport, identity
    pick up, pickup, pick, collect, fetch | pickup
    speed, fast, faster, velocity, quick | km
    weight, heavy, load, payload, weigh | kg
    carry, transport, load, payload
    clean, wash, washing
    e bike, ebike, electric bike, e-bike, pedelec | motor
    bike, bicycle, cycle
    rain, wet, water, waterproof
    installment, installments, instalment, instalments
    pay, payment, paid
    cost, price, fee, charge, expensive | eur
    tyre, tire, tube
    flat tyre, flat tire, puncture
    buy, purchase, bought
    used, ridden, worn
    phone, telephone, call | extension
    email, e-mail, mail, write to
    open, opening hours, closed, hours
    holiday, vacation, days off, time off, leave, annual leave
    quit, resign, notice period, hand in my notice | notice, leave
    hire, rent, borrow, rental
    lost, missing, lose
    repair, fix, mend, replace
    stolen, theft, steal
    password, passcode, credentials, login
    laptop, computer, pc, notebook
    start, begin, commence
    finish, end, complete, deadline
    allowed, permitted, may, permission | forbidden
    maximum, max, at most, top | exceed
    minimum, min, at least
    size, dimensions, measurements, big | cm
    child, children, kid, kids, baby, toddler
    contact, reach, get in touch | write, call, phone
    complain, complaint, dispute, disagree, disagreement, appeal
    invoice, receipt, bill
    address, where, located
    change, modify, edit, alter
    spare, replacement
    assemble, assembly, set up, put together, mount, fit
    training, course, class
    boss, manager, team lead, supervisor
    lunch, meal, food, canteen
    commute, travel to work, come to work
    home office, work from home, remote, home workers
"""
# by the pairs of characters that terms are: a longer word stands here as one of its pairs
_CHINESE = """
    取消、撤销、拦截 | 退回
    退货、退掉、退回、寄回、想退
    退款、退钱、钱退、到账
    换货、换新、能换、更换、调换
    坏了、坏的、故障、损坏、质量、破损、压坏
    邮费、运费、快递费
    谁出、谁付、承担、自付、付运
    不见、丢了、丢失、弄丢、遗失、找不
    过期、有效、失效
    假货、正品、真假、防伪、真伪
    上楼、电梯、搬上
    加钱、收费、另付、费用、要钱、收取、每层
    安装、组装、装好、师傅
    送货、派送、配送、发货、送到
    发货、寄出、发出、出库
    春节、过年、节假、新年
    下单、订购、订单
    工资、薪水、薪资、发薪
    辞职、离职、不干、走人 | 提出
    请假、休假、年假、病假
    酒店、住宿、宾馆、旅馆
    报销、能报 | 标准
    出差、差旅
    员工、职工、同事
    便宜、优惠、打折、折扣、减免 | 几折
    打几、几折、折扣
    修车、维修、修理、更换、修好
    车架、车身
    学校、校园、学生
    采购、购买、买东、批量
    地址、改地
    电话、联系、客服
    保修、质保、保修期
    快递、物流、包裹
    孩子、宝宝、儿童、小孩
    清洗、机洗、洗涤、水洗
    充电、电池、续航
    发票、开票
    新人、新员、入职、新来
    考试、考核、培训
    上班、工作、考勤
    迟到、补卡、考勤
    电脑、笔记
    午饭、午餐、吃饭
    补贴、津贴、补助
    大小、尺寸、多大
    多重、重量、公斤
    门店、体验、店面
    几点、营业、开门 | 上午、下午
"""


class Kin(NamedTuple):
    """Terms of a question that say one thing together, and terms that would say it otherwise."""

    said: tuple[str, ...]
    others: frozenset[str]


def kin_of(question: str) -> list[Kin]:
    """What of a question may be said in other words; a list of words is all that knows it."""
    told = tuple(islice(terms(question), _MOST_ASKED))
    every = frozenset(told)
    return [
        Kin(words, meant - every)
        for asked, meant in _groups()
        for words in asked
        if every.issuperset(words) and _are_told(words, told)
    ]


def _are_told(words: tuple[str, ...], told: tuple[str, ...]) -> bool:
    """Whether `words` are in `told`, in their order and near each other."""
    for first, term in enumerate(told):
        at = first + 1
        if term != words[0]:
            continue
        for word in words[1:]:
            near = told[at : at + _BETWEEN]
            if word not in near:
                break
            at += near.index(word) + 1
        else:
            return True
    return False


@cache
def _groups() -> list[tuple[list[tuple[str, ...]], frozenset[str]]]:
    return [*_read(_ENGLISH, ","), *_read(_CHINESE, "、")]


def _read(lines: str, comma: str) -> Iterator[tuple[list[tuple[str, ...]], frozenset[str]]]:
    """Each line: what asks for one thing, and behind the bar what may only answer."""
    for line in filter(str.strip, lines.splitlines()):
        asking, _, answering = line.partition("|")
        asked = [tuple(terms(words)) for words in asking.split(comma)]
        only_told = [tuple(terms(words)) for words in answering.split(comma)]
        yield asked, frozenset(words[0] for words in [*asked, *only_told] if len(words) == 1)
