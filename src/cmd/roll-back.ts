/** Implements `refit rollback`: finds the plan, and calls the dialect of the plan. */
import { choosePlan, inspectPlans } from '../cli/controls/control-command.ts';
import type { ReasonedFlags, RollBackFlags } from '../cli/controls/roll-back.ts';
import type { Inspection } from '../cli/status/observe.ts';
import { inSession, type Session, type SessionParts } from '../cli/status/status-session.ts';
import { RefitError } from '../util/errors.ts';
import { inRepository } from '../util/home.ts';

export async function rollBack(
  { namespace, ...flags }: RollBackFlags & { readonly namespace?: string },
  parts: SessionParts,
): Promise<void> {
  if (isMachineName(flags.plan)) {
    const { rollBackMachines } = await import('../dialects/capi/command/roll-back-machines.ts');
    return await rollBackMachines(flags.plan, { ...flags, namespace }, parts);
  }
  if (namespace !== undefined)
    throw new RefitError(
      'REFIT_USAGE',
      '--namespace is only for Machines and their owners; write the namespace before the name of the plan, as NAMESPACE/NAME',
    );
  if (flags.reason === undefined)
    throw new RefitError('REFIT_USAGE', '--reason is missing: say why the plan goes back');
  const { reason } = flags;
  await rollBackPlan({ ...flags, reason }, parts);
}

/**
 * Returns true for the name of a Machine or of its owner, which are objects of the management cluster. The plan of a Machine is an object
 * of the workload cluster, and has the name `capi/NAME`.
 */
function isMachineName(plan: string | undefined): plan is string {
  return /^(machine|machinedeployment|[a-z0-9]+controlplane)\//i.test(plan ?? '');
}

async function rollBackPlan(flags: ReasonedFlags, parts: SessionParts): Promise<void> {
  await inSession(flags, parts, 'refit-control', async (session) => {
    const { deletedK0sPlan, rollBackDeletedK0sPlan } = await import(
      '../dialects/autopilot/command/roll-back-deleted-plan.ts'
    );
    const deleted = deletedK0sPlan(session, flags.plan);
    if (deleted !== undefined) return await rollBackDeletedK0sPlan(session, deleted, flags, parts);
    const plans = await inspectPlans(session, flags.plan, parts.clock.now());
    const plan = choosePlan(plans, flags.plan);
    await (await waysOf(plan))(session, plan, flags, parts);
  });
}

type Way = (
  session: Session,
  plan: Inspection,
  flags: ReasonedFlags,
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
        'run refit rollback machine/NAME -n NAMESPACE with the kubeconfig of the management cluster: it names the object to change, and the version',
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
    { hint: `do that instead: see ${inRepository('docs/roll-back.md')}` },
  );
}
