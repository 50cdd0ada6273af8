/** The tables of a conversation, with room to read them. */

import TableCard from "../../cards/TableCard";
import { t } from "../../i18n/i18n";
import type { Beside } from "../../state/beside";
import { beside } from "../../state/beside";
import type { Conversation } from "../../state/conversation";
import type { ShownCard } from "../../wire";

export default function DataTab({ open, shown }: { open: Conversation; shown: Beside }) {
  const tables = open.entries.filter((entry): entry is ShownCard => entry.kind === "Special" && entry.type === "Table" && entry.card !== null);
  const table = tables.find((each) => each.rev === shown.entry) ?? tables.at(-1);
  if (table === undefined || table.card === null) return <p className="empty">{t("noData")}</p>;
  return (
    <div className="data">
      {tables.length > 1 && (
        <select aria-label={t("card_Table")} value={table.rev} onChange={(event) => beside.set({ part: "data", entry: Number(event.target.value) })}>
          {tables.map((each) => <option key={each.rev} value={each.rev}>{each.card?.title || t("card_Table")}</option>)}
        </select>
      )}
      <TableCard key={`${table.index}:${table.rev}`} conversation={open.id} shown={table} card={table.card} beside />
    </div>
  );
}
