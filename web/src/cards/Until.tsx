/** Until when a card waits for an answer: a time of day, and the seconds when few are left. */

import { useEffect, useState } from "react";
import { moment, t } from "../i18n/i18n";

const SOON_MS = 120_000;
const [SECOND_MS, MAX_TIMER_MS] = [1000, 2 ** 31 - 1];

export function Until({ when }: { when: string }) {
  const end = Date.parse(when);
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (Number.isNaN(end) || now >= end) return;
    const wait = Math.max(SECOND_MS, Math.min(end - SOON_MS - now, MAX_TIMER_MS));
    const timer = setTimeout(() => setNow(Date.now()), wait);
    return () => clearTimeout(timer);
  }, [end, now]);
  const left = end - now;
  const words = left < SOON_MS ? t("answerWithin", { seconds: Math.max(0, Math.ceil(left / SECOND_MS)) }) : t("answerUntil", { when: moment(when) });
  return <p className="help until">{words}</p>;
}
