import type { CardProps } from "./useCard";

const HIDDEN = new Set(["id", "title", "status", "rev", "v", "lang", "createdBy"]);

/** Any card as names and values: for types that other programs registered. */
export function GenericCard({ card }: CardProps) {
  const fields = Object.entries(card).filter(([name]) => !HIDDEN.has(name));
  return (
    <dl className="answers">
      {fields.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{typeof value === "object" && value !== null ? <pre tabIndex={0}>{JSON.stringify(value, null, 2)}</pre> : String(value)}</dd>
        </div>
      ))}
    </dl>
  );
}
