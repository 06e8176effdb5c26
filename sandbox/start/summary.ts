/** The summary at the end of `npm start`: versions and times of every node, the waits, and what to do. */
import { mendingOf } from '../../src/cli/operators.ts';
import { table } from '../../src/cli/phrases.ts';
import type { PlanView, TargetView } from '../../src/cli/status/view.ts';

const STEPS = ['Downloading', 'Cordoning', 'ApplyingUpdate', 'Restart', 'UnCordoning'] as const;

/** `versions` tells what really runs on each node now, asked from the node itself. */
export function summarize(view: PlanView, versions: ReadonlyMap<string, string>, waits: readonly string[]): string[] {
  const rows = view.stages.flatMap(({ role, targets }) =>
    targets.map((target) => {
      const versionNow = versions.get(target.name) ?? 'unknown';
      return [target.name, role, `${target.from ?? versionNow} → ${versionNow}`, target.phase, ...seconds(target)];
    }),
  );
  return [
    ...table(['NODE', 'ROLE', 'VERSION', 'STATE', ...STEPS.map((step) => step.toUpperCase())], rows),
    '',
    'Waits during the upgrade:',
    ...(waits.length > 0 ? waits.map((line) => `  ${line}`) : ['  none']),
    ...advice(view),
  ];
}

function seconds({ spent }: TargetView): string[] {
  return STEPS.map((step) => {
    const milliseconds = spent?.[step];
    return milliseconds === undefined ? '' : `${(milliseconds / 1000).toFixed(2)} s`;
  });
}

function advice(view: PlanView): string[] {
  const failed = view.stages.flatMap(({ targets }) => targets).filter(({ phase }) => phase === 'failed');
  if (failed.length === 0) return [];
  return [
    '',
    ...failed.map(({ name, failure }) => `${name} failed: ${failure ?? view.reason ?? ''}`),
    mendingOf(view),
    'The table shows what each node runs now.',
  ];
}
