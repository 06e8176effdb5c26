/** Owns the memory of who waited for what during one run, and for how long. */
import type { PlanView } from '../../src/cli/status/view.ts';
import { formatDuration } from '../../src/util/duration.ts';

/** What is merely being worked on waits for nobody. */
const WORKING = new Set(['Intended', 'Signalled', 'InFlight']);

export class WaitLog {
  readonly #total = new Map<string, number>();
  #open: readonly string[] = [];
  #since = 0;

  /** Takes what is seen at `now` (steady milliseconds) as true until the next call. */
  note(view: PlanView, now: number): void {
    for (const wait of this.#open) this.#total.set(wait, (this.#total.get(wait) ?? 0) + now - this.#since);
    this.#since = now;
    this.#open = view.waits.filter(({ reason }) => !WORKING.has(reason.code)).map(whoForWhat);
  }

  lines(): string[] {
    return [...this.#total]
      .toSorted(([, a], [, b]) => b - a)
      .map(([wait, milliseconds]) => `${formatDuration(milliseconds).padStart(9)}  ${wait}`);
  }
}

function whoForWhat({ target, gate, reason }: PlanView['waits'][number]): string {
  if (gate === 'slots') return `${reason.message.replace(/^\d+ more /, '')} (${gate})`;
  return `${target === undefined ? '' : `${target}: `}${reason.message} (${gate})`;
}
