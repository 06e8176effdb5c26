/** Renders the hooks of a policy that have failed. */
import { age } from '../phrases.ts';
import type { Section } from './text.ts';
import type { HookView, PlanView } from './view.ts';

/**
 * Returns the section with the failed hooks that did not fail their targets, because the policy ignores that; `target` limits it to one
 * target. The reasons of waits and failures name all other hooks.
 */
export function hookSection(
  { hooks = [], stages }: Pick<PlanView, 'hooks' | 'stages'>,
  now: number,
  target?: string,
): Section {
  const targets = stages.flatMap((stage) => stage.targets);
  const failed = new Set(targets.flatMap(({ name, phase }) => (phase === 'failed' ? name : [])));
  const shown = hooks.filter(
    (hook) =>
      hook.state === 'Failed' &&
      !failed.has(hook.target) &&
      (target === undefined || hook.target === target),
  );
  return { heading: 'hooks', lines: shown.map((hook) => hookLine(hook, now)) };
}

function hookLine({ hook, target, message = '', since }: HookView, now: number): string {
  const past = since === undefined ? '' : ` ${age(since, now)} ago`;
  return `${hook} of ${target} failed${past}: ${message}`;
}
