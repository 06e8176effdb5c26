/** Implements `refit rollback`: finds the plan, and hands it to its dialect. */
import { choosePlan, inspectPlans } from '../cli/controls/control-command.ts';
import type { RollBackFlags } from '../cli/controls/roll-back.ts';
import type { Inspection } from '../cli/status/observe.ts';
import { inSession, type Session, type SessionParts } from '../cli/status/status-session.ts';
import { RefitError } from '../util/errors.ts';

export async function rollBack(flags: RollBackFlags, parts: SessionParts): Promise<void> {
  await inSession(flags, parts, 'refit-control', async (session) => {
    const plans = await inspectPlans(session, flags.plan, parts.clock.now());
    const plan = choosePlan(plans, flags.plan);
    await (await waysOf(plan))(session, plan, flags, parts);
  });
}

type Way = (
  session: Session,
  plan: Inspection,
  flags: RollBackFlags,
  parts: SessionParts,
) => Promise<void>;

async function waysOf({ dialect }: Inspection): Promise<Way> {
  switch (dialect.name) {
    case 'autopilot':
      return (await import('../dialects/autopilot/command/roll-back-command.ts')).rollBackK0sPlan;
    case 'cattle':
      return (await import('../dialects/cattle/command/roll-back-cattle-command.ts'))
        .rollBackCattlePlan;
    case 'capi':
      throw byHand(
        'set the version back in the KubeadmControlPlane, K0sControlPlane or MachineDeployment that owns the Machine',
      );
    default:
      throw byHand(
        'write the older patch and its binaries into the manifest, and run refit kubeadm apply --back; an older minor version needs a snapshot of etcd',
      );
  }
}

function byHand(what: string): RefitError {
  return new RefitError(
    'REFIT_CONTROL',
    `refit rollback does not write plans of this dialect: ${what}`,
    { hint: 'do that instead, as the documentation of Refit on going back says' },
  );
}
