/** What a conversation is called. Where there is no room, the number of a version stays: it tells them apart. */
export function Name({ title }: { title: string }) {
  const [, words = title, number = ""] = /^([\s\S]*?)(\s\(\d{1,6}\))$/.exec(title) ?? [];
  return <span className="name" title={title}><span className="words">{words}</span>{number !== "" && <span>{number}</span>}</span>;
}
