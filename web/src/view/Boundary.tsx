/** What keeps one part that cannot be drawn from taking the page with it. */

import { Component } from "react";
import type { ReactNode } from "react";
import { t } from "../i18n/i18n";

export class Boundary extends Component<{ children: ReactNode }, { broken: boolean }> {
  override state = { broken: false };

  static getDerivedStateFromError(): { broken: boolean } {
    return { broken: true };
  }

  override render(): ReactNode {
    if (!this.state.broken) return this.props.children;
    return (
      <p className="problem" role="alert">
        {t("cannotDraw")} <button type="button" onClick={() => this.setState({ broken: false })}>{t("tryAgain")}</button>
      </p>
    );
  }
}
