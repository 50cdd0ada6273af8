/** Line drawings, 20 by 20, in the colour of the text around them. */

const PATHS = {
  add: "M10 4v12M4 10h12",
  attach: "M14 8l-5.5 5.5a2.1 2.1 0 0 1-3-3L11 5a3.3 3.3 0 0 1 4.7 4.7L9.8 15.6a4.6 4.6 0 0 1-6.5-6.5L8.5 4",
  branch: "M6 4v12M6 11c0-3 8-2 8-6M14 5v-1M6 16v0",
  close: "M5 5l10 10M15 5L5 15",
  code: "M7 6l-4 4 4 4M13 6l4 4-4 4",
  copy: "M7 7h8v9H7zM5 13H4V4h8v1",
  down: "M10 4v11M5 10l5 5 5-5",
  edit: "M4 16l1-4 8-8 3 3-8 8zM11 6l3 3",
  help: "M7 7.5a3 3 0 1 1 4.3 2.7c-.9.5-1.3 1-1.3 2.1M10 15.6h.01",
  menu: "M3 6h14M3 10h14M3 14h14",
  moon: "M16.5 12A6.8 6.8 0 0 1 8 3.5a6.8 6.8 0 1 0 8.5 8.5z",
  more: "M4 10h.01M10 10h.01M16 10h.01",
  panel: "M3 4h14v12H3zM12 4v12",
  redo: "M16 10a6 6 0 1 1-2-4.5M16 3v4h-4",
  remove: "M4 6h12M8 6V4h4v2M6 6l1 10h6l1-10",
  search: "M9 4a5 5 0 1 1 0 10A5 5 0 0 1 9 4zM13 13l4 4",
  send: "M10 16V4M5 9l5-5 5 5",
  settings: "M4 6h8M15 6h1M4 14h1M8 14h8M13.5 4.5v3M6.5 12.5v3",
  sun: "M10 6.6a3.4 3.4 0 1 1 0 6.8 3.4 3.4 0 0 1 0-6.8zM10 2.2v1.6M10 16.2v1.6M2.2 10h1.6M16.2 10h1.6M4.5 4.5l1.1 1.1M14.4 14.4l1.1 1.1M4.5 15.5l1.1-1.1M14.4 5.6l1.1-1.1",
  stop: "M6 6h8v8H6z",
  tool: "M12 4a4 4 0 0 0-3.6 5.6L4 14l2 2 4.4-4.4A4 4 0 0 0 16 8l-2.5 1L11 6.5z",
  check: "M4 10.5l4 4 8-9",
  back: "M12 5l-5 5 5 5",
  next: "M8 5l5 5-5 5",
  book: "M4 4h5a1.5 1.5 0 0 1 1.5 1.5V16A1.5 1.5 0 0 0 9 15H4zM16 4h-4.5A1.5 1.5 0 0 0 10 5.5V16a1.5 1.5 0 0 1 1.5-1H16z",
  plug: "M7 3v4M13 3v4M5 7h10v3a5 5 0 0 1-10 0zM10 15v3",
  graph: "M4 5h4v4H4zM12 3h4v4h-4zM12 13h4v4h-4zM8 7h4M8 8l4 6",
  chip: "M6 6h8v8H6zM8 3v3M12 3v3M8 14v3M12 14v3M3 8h3M3 12h3M14 8h3M14 12h3",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 20 20" width="18" height="18" aria-hidden="true">
      <path d={PATHS[name]} fill="none" stroke="currentColor" strokeWidth="1.6" strokeLinecap="round" strokeLinejoin="round" />
    </svg>
  );
}

export function IconButton(props: {
  icon: IconName;
  label: string;
  onClick: () => void;
  pressed?: boolean;
  disabled?: boolean;
  className?: string;
}) {
  return (
    <button
      type="button"
      className={`icon-button ${props.className ?? ""}`}
      title={props.label}
      aria-label={props.label}
      aria-pressed={props.pressed}
      disabled={props.disabled}
      onClick={props.onClick}
    >
      <Icon name={props.icon} />
    </button>
  );
}
