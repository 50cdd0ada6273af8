/** What of a list could not be opened, each with why. */
export function BrokenList({ problems }: { problems: Readonly<Record<string, string>> }) {
  return Object.entries(problems).map(([id, why]) => <p key={id} className="problem"><b>{id}</b> {why}</p>);
}
