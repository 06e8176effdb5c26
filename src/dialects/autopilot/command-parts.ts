/** Owns which parts a command has, in the order in which they run: image bundles, then controllers, then workers. */
import type { AirgapUpdate, CommandStatus, K0sUpdate, PlanCommand } from '../../api/autopilot/plan.ts';
import type { TargetSpec } from '../../api/autopilot/target.ts';
import type { Role } from '../../engine/model/recorded.ts';

export type Update = K0sUpdate | AirgapUpdate;

export interface Part {
  readonly procedure: 'k0supdate' | 'airgapupdate';
  readonly role: Role;
  /** Absent where the plan does not hold it any more. */
  readonly update: Update | undefined;
  readonly targets: TargetSpec | undefined;
}

/** Those of the plan, and of its record where it was recorded with more. An image that a release needs must be there first. */
export function partsOf(
  { k0supdate, airgapupdate }: PlanCommand,
  recorded: Pick<CommandStatus, 'k0supdate' | 'airgapupdate'> = {},
): Part[] {
  const update = { procedure: 'k0supdate', update: k0supdate } as const;
  const { controllers, workers } = k0supdate?.targets ?? {};
  return [
    ...(airgapupdate || recorded.airgapupdate
      ? [{ procedure: 'airgapupdate', role: 'worker', update: airgapupdate, targets: airgapupdate?.workers } as const]
      : []),
    ...(k0supdate || recorded.k0supdate
      ? ([
          { ...update, role: 'controller', targets: controllers },
          { ...update, role: 'worker', targets: workers },
        ] as const)
      : []),
  ];
}
