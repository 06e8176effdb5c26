/** Owns `refit preview` as text for people: each stage with its waves, then what keeps targets from starting now. */
import { listed } from '../phrases.ts';
import type { PlanPreview, PreviewView, StagePreview } from './view.ts';

/** More than this nobody reads; the JSON form has all of them. */
const [MOST_WAVES, MOST_NAMES] = [12, 8];

export function renderPreview({ plans }: PreviewView): string {
  const blocks = plans.map((plan) => renderPlan(plan).join('\n'));
  return `${blocks.length > 0 ? blocks.join('\n\n') : 'There is no plan that is not over.'}\n`;
}

function renderPlan(plan: PlanPreview): string[] {
  const { kind, name, id, phase, present, reason, stages, waits } = plan;
  const found = stages.filter(({ done, moving, waves }) => done + moving.length + waves.length > 0);
  return [
    `${kind} ${name}${id === '' ? '' : ` (${id})`}  ${phase}`,
    ...(present === undefined ? [] : [`  present  the cluster has a plan of that name, which is ${present}`]),
    ...(reason === undefined ? [] : [`  problem  ${reason}`]),
    ...found.flatMap(stageLines),
    ...waits.map(({ gate, reason: { message } }) => `  waits    ${message} (${gate})`),
    ...(found.length === 0 && reason === undefined ? ['  nothing  no target is left'] : []),
  ];
}

function stageLines({ command, role, version, maxInFlight, done, moving, waves }: StagePreview): string[] {
  const rest = waves.length - MOST_WAVES;
  return [
    `  ${role}s of command ${command} to ${version}, ${maxInFlight} at a time${done > 0 ? `, ${done} done` : ''}`,
    ...(moving.length > 0 ? [`    now      ${listed(moving, MOST_NAMES)}`] : []),
    ...waves
      .slice(0, MOST_WAVES)
      .map((names, index) => `    ${`wave ${index + 1}`.padEnd(8)} ${listed(names, MOST_NAMES)}`),
    ...(rest > 0 ? [`    and ${rest} more waves`] : []),
  ];
}
