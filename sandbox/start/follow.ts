/** Shows `refit status -w` during a demonstration, and returns the last state. */
import { standardOutput } from '../../src/cli/output.ts';
import type { ShownPlan } from '../../src/cli/status/json-form.ts';
import { showStatus } from '../../src/cli/status/status-command.ts';
import { MODULES } from '../../src/dialects/modules.ts';
import { systemClock } from '../../src/util/clock.ts';
import type { Ground } from './demonstration.ts';
import { WaitLog } from './waits.ts';

export interface Followed {
  /** The exit code of `refit status -w`. */
  readonly code: number;
  /** The last state of the first plan; undefined if there was no plan. */
  readonly last: ShownPlan | undefined;
  /** The last state of all plans. */
  readonly views: readonly ShownPlan[];
  /** The waits, the longest first. */
  readonly waits: readonly string[];
}

/** Resolves when every plan has ended, or after an interruption. */
export async function follow(
  kubeconfig: string,
  { abort, keep }: Pick<Ground, 'abort' | 'keep'>,
  apiPort?: number,
): Promise<Followed> {
  const waits = new WaitLog();
  let views: readonly ShownPlan[] = [];
  const onView = (seen: readonly ShownPlan[]): void => {
    views = seen;
    const [first] = seen;
    if (first) waits.note(first, systemClock.monotonic());
  };
  const flags = {
    kubeconfig,
    output: 'text',
    watch: true,
    ...(apiPort === undefined ? {} : { apiPort }),
  } as const;
  // Advice is useful only if the cluster still exists when the user reads it.
  const output = { ...standardOutput, advises: keep !== undefined };
  const parts = { modules: MODULES, clock: systemClock, output, abort, onView };
  const code = await showStatus(flags, parts);
  return { code, last: views[0], views, waits: waits.lines() };
}
