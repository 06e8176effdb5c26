/** Creates the Plan for a release. An annotation of the Plan names the UpdateConfig and the release. */
import { createHash } from 'node:crypto';
import {
  ORIGIN_ANNOTATION,
  PLAN_NAME,
  type Plan,
  type PlanCommand,
} from '../../api/autopilot/plan.ts';
import type { PlannedCommand, UpdateConfig } from '../../api/autopilot/update-config.ts';
import { LEAD_TIME_ANNOTATION, PLAN_WINDOWS_ANNOTATION } from '../../engine/policy/plan-windows.ts';
import type { Release } from '../channel/read-index.ts';
import type { UpdateSettings } from '../config/read-config.ts';

/** Returns the Plan for a release. `previous` is the Plan that it replaces. */
export function makePlan(
  config: UpdateConfig,
  settings: UpdateSettings,
  release: Release,
  previous?: Plan,
): Plan {
  const { name, uid = '' } = config.metadata;
  const { schedule } = settings;
  const id = planIdOf([uid, release.version, previous?.metadata.uid ?? '']);
  const origin = { config: name, version: release.version };
  const { written, lead } = schedule.kind === 'periodic' ? schedule : {};
  const window = written && { [PLAN_WINDOWS_ANNOTATION]: JSON.stringify([written]) };
  const ahead = lead && { [LEAD_TIME_ANNOTATION]: lead.text };
  return {
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'Plan',
    metadata: {
      name: PLAN_NAME,
      annotations: { [ORIGIN_ANNOTATION]: JSON.stringify(origin), ...window, ...ahead },
    },
    spec: {
      id,
      timestamp: id,
      commands: (settings.commands ?? EVERYTHING).map((command) => filled(command, release)),
    },
  };
}

/**
 * Returns an id that is the same for the same facts, no matter which leader makes the Plan. The Plan that replaces this
 * Plan has another id.
 */
function planIdOf(facts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex').slice(0, 16);
}

const ALL = { discovery: { selector: {} } };
const EVERYTHING: readonly PlannedCommand[] = [
  { k0supdate: { targets: { controllers: ALL, workers: ALL } } },
];

function filled(
  { k0supdate, airgapupdate }: PlannedCommand,
  { version, k0s, airgap }: Release,
): PlanCommand {
  return {
    ...(k0supdate && { k0supdate: { ...k0supdate, version, platforms: k0s } }),
    ...(airgapupdate && { airgapupdate: { ...airgapupdate, version, platforms: airgap } }),
  };
}
