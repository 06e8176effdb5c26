/** Renders the hooks of a policy that run or have failed. */
import { age } from '../phrases.ts';
import type { HookJson, ShownPlan } from './json-form.ts';

/** A section of the text that `refit status` and `why` print. */
interface HookSection {
  readonly heading: string;
  readonly lines: readonly string[];
}

/**
 * Returns the section about the running hooks, and about the failed hooks that did not make their targets fail and that
 * do not stop the plan. If `target` is set, the section is only about that target. All other failed hooks are already in
 * the reasons of waits and failures.
 */
export function hookSection(
  { hooks = [], stages, waits }: Pick<ShownPlan, 'hooks' | 'stages' | 'waits'>,
  now: number,
  target?: string,
): HookSection {
  const targets = stages.flatMap((stage) => stage.targets);
  const failed = new Set(targets.flatMap(({ name, phase }) => (phase === 'failed' ? name : [])));
  const stopped = waits.some(({ reason }) => reason.code === 'PlanHookFailed');
  const shown = hooks.filter(
    (hook) =>
      (hook.state === 'Running' ||
        (hook.target === undefined ? !stopped : !failed.has(hook.target))) &&
      (target === undefined || hook.target === target),
  );
  return { heading: 'hooks', lines: shown.map((hook) => hookLine(hook, now)) };
}

/**
 * Returns the section about the hooks that `refit status` shows beside its rows: the hooks of the whole plan, and the
 * running hooks of targets. If failed hooks of the whole plan stop the plan, the section does not show them.
 */
export function statusHookSection(
  plan: Pick<ShownPlan, 'hooks' | 'stages' | 'waits'>,
  now: number,
): HookSection {
  const hooks = plan.hooks?.filter(
    ({ target, state }) => target === undefined || state === 'Running',
  );
  const { heading, lines } = hookSection({ ...plan, hooks }, now);
  const left = lines.length - MOST_LINES;
  if (left <= 0) return { heading, lines };
  return { heading, lines: [...lines.slice(0, MOST_LINES), `and ${left} more: run refit why`] };
}

/** The most hooks that `refit status` shows, so that a plan fits on a screen. */
const MOST_LINES = 8;

function hookLine({ hook, target, state, message = '', since }: HookJson, now: number): string {
  const of = `${hook} of ${target ?? 'the plan'}`;
  if (state === 'Running') {
    const known = since === undefined ? '' : `, for ${age(since, now)} now`;
    return `${of} has not succeeded yet${known}: ${message}`;
  }
  const past = since === undefined ? '' : ` ${age(since, now)} ago`;
  return `${of} failed${past}: ${message}`;
}
