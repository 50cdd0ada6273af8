/** Other versions of this conversation: what regenerating and editing made. */

import { useEffect, useState } from "react";
import { api } from "../api";
import { t } from "../i18n/i18n";
import { show } from "../state/page";
import { IconButton } from "./icons";

export function BranchArrows({ id }: { id: string }) {
  const [all, setAll] = useState<string[]>([]);
  useEffect(() => {
    let wanted = true;
    api.branches(id).then(
      ({ items }) => wanted && setAll(items.findLast((one) => one.conversationIds.includes(id))?.conversationIds ?? []),
      () => wanted && setAll([]), // without the arrows the conversation is all there
    );
    return () => {
      wanted = false;
    };
  }, [id]);
  const at = all.indexOf(id);
  if (all.length < 2 || at < 0) return null;
  const go = (to: number) => void show(all[to] ?? id);
  return (
    <span className="branches" role="group" aria-label={t("versions")}>
      <IconButton icon="back" label={t("versionBefore")} className="branch-before" disabled={at === 0} onClick={() => go(at - 1)} />
      <span>{at + 1}/{all.length}</span>
      <IconButton icon="next" label={t("versionAfter")} className="branch-after" disabled={at === all.length - 1} onClick={() => go(at + 1)} />
    </span>
  );
}
