/** Implements the controls of Machines of Cluster API: `refit approve`, and `refit retry` of a Machine. */
import { type UpdaterSet, updaterSets } from '../../../api/refit/updater-set.ts';
import type {
  ApproveFlags,
  CommandParts,
  ObjectFlags,
  TargetsToRetry,
} from '../../../cli/contract/object-commands.ts';
import { dryRunLines } from '../../../cli/controls/dry-run.ts';
import { namesOf } from '../../../cli/controls/machine-names.ts';
import { connect } from '../../../cli/status/status-session.ts';
import { planReference } from '../../../engine/model/plan-reference.ts';
import { isFinal } from '../../../engine/model/rollout.ts';
import { kubeletVersionOf, type Node, nodes, removalOf } from '../../../kube/resources.ts';
import { ifAllowed } from '../../../kube/status-error.ts';
import { listNodes } from '../../../kube/trimmed.ts';
import * as wire from '../../../signal/node-configuration.ts';
import { RefitError } from '../../../util/errors.ts';
import { printable } from '../../../util/printable.ts';
import { settleAll } from '../../../util/waits.ts';
import { mayBePartOf } from '../../../versions/release-parts.ts';
import { MOST } from '../hooks/updaters/refused-changes.ts';
import { capi } from '../plan/capi-dialect.ts';
import {
  type MachineUpdate,
  recordOf,
  UPDATE_ANNOTATION,
  updateOn,
} from '../plan/machine-update.ts';
import { namespaceOf } from '../plan/rollout.ts';

/**
 * Retries the failed update of a Machine. Removes the failed request from the Node, so that the next call of Cluster
 * API writes a new request. If several Machines are one plan, the request stays, because its time is the place of the
 * Machine in the order of the plan. In this case, resolves with the targets to retry. `named` is the name of the Machine,
 * also as `machine/NAME`, or of its Node. Resolves with false if the Node has no failed update of Cluster API.
 */
export async function retryMachine(
  named: string,
  flags: ObjectFlags,
  { abort, output }: CommandParts,
): Promise<boolean | TargetsToRetry> {
  using client = await connect(flags, 'refit-control');
  const all = (await ifAllowed(listNodes(client, { abort })))?.items ?? [];
  const name = named.replace(/^(?:machine|capi)\//i, '');
  // A kubelet can claim the name of any Machine for its Node, but not the name of another Node. So if a Node has the name, only
  // that Node is retried. Otherwise all Nodes that claim the Machine are retried.
  const own = all.filter(({ metadata }) => metadata.name === named);
  const meant = own.length > 0 ? own : all.filter((each) => namesOf(each).includes(name));
  const isOfMachine = flags.plan === undefined || /^(?:capi|machine|node)\//i.test(flags.plan);
  const failed = meant.filter(
    (each) => (isOfMachine || isPartOfPlan(each)) && failuresOn(each).length > 0,
  );
  const retried = failed.map(async (node) => {
    // The patch removes only the request that this command has read. A newer request belongs to another update, so it
    // must stay.
    const removal = failuresOn(node).flatMap((key) => removalOf(node, key));
    if (flags.dryRun !== 'client')
      await client.patch(nodes, node.metadata.name, removal, {
        type: 'json',
        dryRun: flags.dryRun === 'server',
        abort,
      });
    output.write(
      `${printable(`Machine ${namesOf(node).at(-1)} is updated again when Cluster API sends its next request.`)}\n`,
    );
  });
  // All retries are attempted before an error is reported. Otherwise, a Node that changes all the time would prevent
  // the other retries.
  await settleAll(retried);
  if (failed.length > 0)
    output.write(
      dryRunLines(flags)
        .map((line) => `${line}\n`)
        .join(''),
    );
  const targets = meant.filter(
    (each) => isPartOfPlan(each) && (!failed.includes(each) || isFailedTarget(each)),
  );
  if (targets.length === 0) return failed.length > 0;
  return targetsOf(targets, own.length > 0 ? undefined : targets.map(planOf)[0]);
}

const isPartOfPlan = (node: Node): boolean => updateOn(node)?.owner !== undefined;

function isFailedTarget(node: Node): boolean {
  const update = updateOn(node);
  return update !== undefined && recordOf(node, update)?.state === 'failed';
}

function targetsOf(targets: readonly Node[], plan: string | undefined): TargetsToRetry {
  return { names: targets.map(({ metadata }) => metadata.name), plan };
}

/** Returns the name of the plan with the Machine of this Node. */
function planOf(node: Node): string | undefined {
  const update = updateOn(node);
  if (update?.owner === undefined) return undefined;
  const { name } = update.owner;
  return planReference({ dialect: capi.name, namespace: namespaceOf(update), name });
}

/** Returns the keys of the annotations with failed requests on the Node that are removed. */
function failuresOn(node: Node): string[] {
  const update = updateOn(node);
  const asked = wire.configurationRequestOn(node);
  return [
    ...(update !== undefined && isWithdrawn(node, update) ? [UPDATE_ANNOTATION] : []),
    ...(asked && wire.configurationReportOn(node, asked)?.failure !== undefined
      ? [wire.CONFIGURATION_ANNOTATION]
      : []),
  ];
}

/** Returns true if only a new request can repeat the update. */
function isWithdrawn(node: Node, update: MachineUpdate): boolean {
  const { phase, state } = recordOf(node, update) ?? { phase: 'new', state: 'pending' };
  const isReached = mayBePartOf(kubeletVersionOf(node) ?? '', update.version);
  if (update.owner === undefined) return isFinal({ phase }) && !(phase === 'done' && isReached);
  if (state === 'done') return !isReached;
  // What was refused would be refused again, so it is judged anew with the next request.
  return state === 'unsupported' || state === 'missing';
}

/**
 * Approves the replacement of an object. `named` is its kind and name, such as `machine/cp-1`.
 * Resolves even if it was approved before.
 */
export async function approve(
  named: string,
  flags: ApproveFlags,
  { abort, output }: CommandParts,
): Promise<void> {
  if (!/^machine(?:set)?\/[^/]+$/i.test(named))
    throw new RefitError(
      'REFIT_USAGE',
      `${JSON.stringify(named)} is no object that waits for approval: write machine/NAME or machineset/NAME; for a wave of a plan, add --wave`,
    );
  using client = await connect(flags, 'refit-control');
  // The name is converted to the form in which the hooks write objects into the status of the UpdaterSet: `Machine prod/cp-1`.
  const title = named.replace('/', ` ${flags.namespace}/`);
  const object = title.replace(/^machine/i, 'Machine').replace(/set /i, 'Set ');
  const all = (await client.listAll(updaterSets, { abort })).items.filter(
    ({ spec }) => spec.uncovered === 'Ask',
  );
  const waiting = ({ status }: UpdaterSet) => (status?.uncovered ?? []).map((each) => each.object);
  const asking = all.filter((each) => waiting(each).includes(object));
  // The list in the status of an UpdaterSet has a maximum length. If the list is full, the object may wait for approval
  // although it is not in the list.
  const mayAsk = (set: UpdaterSet) => waiting(set).length >= MOST && /^Machine(Set)? /.test(object);
  const sets = asking.length > 0 ? asking : all.filter(mayAsk);
  if (sets.length === 0) {
    const others = all.flatMap(waiting).join(', ') || 'none';
    throw new RefitError(
      'REFIT_CONTROL',
      `${object} does not wait for approval; these objects wait: ${printable(others)}`,
    );
  }
  for (const { metadata, status } of sets) {
    const approved = [...new Set([...(status?.approved ?? []), object])];
    const patch = { metadata: { resourceVersion: metadata.resourceVersion }, status: { approved } };
    if (flags.dryRun === 'client') continue;
    await client.patch(updaterSets, metadata.name, patch, {
      type: 'merge',
      subresource: 'status',
      dryRun: flags.dryRun === 'server',
      abort,
    });
  }
  const said = `${printable(object)} is approved: Cluster API replaces it after its next request.`;
  output.write([said, ...dryRunLines(flags)].map((line) => `${line}\n`).join(''));
}
