/** Renders the hooks of a policy that have failed. */
import { age } from '../phrases.ts';
import type { HookView, PlanView } from './view.ts';

/** A section of the text that `refit status` and `why` print. */
interface HookSection {
  readonly heading: string;
  readonly lines: readonly string[];
}

/**
 * Returns the section about the failed hooks that did not make their targets fail and that do not stop the plan. If
 * `target` is set, the section is only about that target. All other failed hooks are already in the reasons of waits
 * and failures.
 */
export function hookSection(
  { hooks = [], stages, waits }: Pick<PlanView, 'hooks' | 'stages' | 'waits'>,
  now: number,
  target?: string,
): HookSection {
  const targets = stages.flatMap((stage) => stage.targets);
  const failed = new Set(targets.flatMap(({ name, phase }) => (phase === 'failed' ? name : [])));
  const stopped = waits.some(({ reason }) => reason.code === 'PlanHookFailed');
  const shown = hooks.filter(
    (hook) =>
      hook.state === 'Failed' &&
      (hook.target === undefined ? !stopped : !failed.has(hook.target)) &&
      (target === undefined || hook.target === target),
  );
  return { heading: 'hooks', lines: shown.map((hook) => hookLine(hook, now)) };
}

/** Returns the section about the failed hooks of the whole plan. The section is empty if these hooks stop the plan. */
export function planHookSection(
  plan: Pick<PlanView, 'hooks' | 'stages' | 'waits'>,
  now: number,
): HookSection {
  const hooks = plan.hooks?.filter(({ target }) => target === undefined);
  return hookSection({ ...plan, hooks }, now);
}

function hookLine({ hook, target, message = '', since }: HookView, now: number): string {
  const past = since === undefined ? '' : ` ${age(since, now)} ago`;
  return `${hook} of ${target ?? 'the plan'} failed${past}: ${message}`;
}
