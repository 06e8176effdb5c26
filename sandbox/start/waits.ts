/** Records the waits of one run, and the duration of each wait. */

import type { ShownPlan } from '../../src/cli/status/json-form.ts';
import { withoutReports } from '../../src/cli/status/sentences.ts';
import { formatDuration } from '../../src/util/duration.ts';

/** The reasons that mean work in progress. They are not waits. */
const WORKING = new Set(['Completed', 'Intended', 'Signalled', 'InFlight']);

export class WaitLog {
  readonly #total = new Map<string, number>();
  #open: readonly string[] = [];
  #since = 0;

  /** Records the waits at `now` (monotonic milliseconds). Each wait lasts until the next call. */
  note(view: ShownPlan, now: number): void {
    for (const wait of this.#open)
      this.#total.set(wait, (this.#total.get(wait) ?? 0) + now - this.#since);
    this.#since = now;
    this.#open = view.waits
      .filter(({ reason }) => !WORKING.has(reason.code))
      .map((wait) => withoutReports(describeWait(wait), view));
  }

  lines(): string[] {
    return [...this.#total]
      .toSorted(([, a], [, b]) => b - a)
      .map(([wait, milliseconds]) => `${formatDuration(milliseconds).padStart(9)}  ${wait}`);
  }
}

function describeWait({ target, gate, reason }: ShownPlan['waits'][number]): string {
  if (gate === 'slots') return `${reason.message.replace(/^\d+ more /, '')} (${gate})`;
  return `${target === undefined ? '' : `${target}: `}${reason.message} (${gate})`;
}
