/** Says what has become of the nodes of a plan since it was done. */
import { listed } from '../../util/phrases.ts';
import type { ShownPlan } from './json-form.ts';
import { targetsOf } from './sentences.ts';
import type { Section } from './text.ts';

const MOST_NAMES = 8;

/**
 * Returns the section with the nodes of a done plan that do not exist any more, or run another version now. A plan with another
 * end has a reason that names such nodes.
 */
export function sinceSection({ phase, stages }: Pick<ShownPlan, 'phase' | 'stages'>): Section {
  const last = new Map(targetsOf({ stages }).map((target) => [target.name, target]));
  const done = phase === 'done' ? [...last.values()].filter((each) => each.phase === 'done') : [];
  const gone = done.flatMap(({ name, gone: isGone }) => (isGone === true ? name : []));
  const others = done.flatMap(({ name, gone: isGone, runs }) =>
    isGone === true || runs === undefined ? [] : [`${name} runs ${runs}`],
  );
  const verb = gone.length === 1 ? 'does' : 'do';
  return {
    heading: 'now',
    lines: [
      ...(gone.length === 0 ? [] : [`${listed(gone, MOST_NAMES)} ${verb} not exist any more`]),
      ...(others.length === 0 ? [] : [listed(others, MOST_NAMES)]),
    ],
  };
}
