import { number, t } from "../i18n/i18n";
import { beside } from "../state/beside";
import { checkpointsOf, useSpent } from "../state/spent";

/** Tokens of the last run, where its model counts them; a press shows the run. Asked for again as `said`, the number of entries, grows. */
export function TokenUse({ conversation, busy, said }: { conversation: string; busy: boolean; said: number }) {
  const find = async () => (busy ? undefined : (await checkpointsOf(conversation, 1))[0]?.id);
  const { input_tokens: read, output_tokens: written } = useSpent(find, `${conversation} ${busy} ${said}`)?.usage ?? {};
  if (read == null && written == null) return null;
  return <button type="button" className="plain token-use" title={t("tokensLast")} onClick={() => beside.set({ part: "run" })}>{t("tokensAll", { count: number((read ?? 0) + (written ?? 0)) })}</button>;
}
