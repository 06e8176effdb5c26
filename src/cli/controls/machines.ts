/** Implements what is for Machines of Cluster API only: `refit approve`, and `refit retry` for one of them. */
import { NODE_ANNOTATIONS } from '../../api/capi/machine.ts';
import { type UpdaterSet, updaterSets } from '../../api/refit/updater-set.ts';
import { MOST } from '../../dialects/capi/hooks/updaters/refused-changes.ts';
import { recordOf, UPDATE_ANNOTATION, updateOn } from '../../dialects/capi/plan/rollout.ts';
import { isFinal } from '../../engine/model/rollout.ts';
import { kubeletVersionOf, type Node, nodes, removalOf } from '../../kube/resources.ts';
import { ifAllowed } from '../../kube/status-error.ts';
import { listNodes } from '../../kube/trimmed.ts';
import * as wire from '../../signal/node-configuration.ts';
import { RefitError } from '../../util/errors.ts';
import { printable } from '../../util/printable.ts';
import { settleAll } from '../../util/waits.ts';
import { mayBePartOf } from '../../versions/release-parts.ts';
import { connect, type SessionParts } from '../status/status-session.ts';
import type { ControlFlags } from './control-command.ts';

/** Removes the request on its Node, so that the next call makes another one. False if nothing of Cluster API has failed there. */
export async function retryMachine(
  name: string,
  flags: ControlFlags,
  { abort, output }: SessionParts,
) {
  if (flags.plan !== undefined && !/^(capi|machine|node)\//i.test(flags.plan)) return false;
  using client = await connect(flags, 'refit-control');
  const all = (await ifAllowed(listNodes(client, { abort })))?.items ?? [];
  // A kubelet may give its Node the name of any Machine, but not that of another Node: all that have it are retried.
  const own = all.filter(({ metadata }) => metadata.name === name);
  const failed = (own.length > 0 ? own : all).filter(
    (each) => namesOf(each).includes(name) && failuresOn(each).length,
  );
  const retried = failed.map(async (node) => {
    // Another request is another one's.
    const removal = failuresOn(node).flatMap((key) => removalOf(node, key));
    await client.patch(nodes, node.metadata.name, removal, { type: 'json', abort });
    output.write(
      `${printable(`Machine ${namesOf(node).at(-1)} is updated again when Cluster API calls next.`)}\n`,
    );
  });
  // A kubelet that changes its Node all the time keeps no other from its retry.
  await settleAll(retried);
  return failed.length > 0;
}

function namesOf({ metadata: { name, annotations = {} } }: Node): string[] {
  const { [NODE_ANNOTATIONS.machine]: machine = name, [NODE_ANNOTATIONS.namespace]: namespace } =
    annotations;
  return namespace === undefined ? [name, machine] : [name, machine, `${namespace}/${machine}`];
}

/** Annotations of requests that came to no good end. */
function failuresOn(node: Node): string[] {
  const update = updateOn(node);
  const asked = wire.configurationRequestOn(node);
  const phase = (update && recordOf(node, update)?.phase) ?? 'new';
  const isReached =
    phase === 'done' && mayBePartOf(kubeletVersionOf(node) ?? '', update?.version ?? '');
  return [
    ...(isFinal({ phase }) && !isReached ? [UPDATE_ANNOTATION] : []),
    ...(asked && wire.configurationReportOn(node, asked)?.failure !== undefined
      ? [wire.CONFIGURATION_ANNOTATION]
      : []),
  ];
}

type ApproveFlags = ControlFlags & { readonly namespace: string };

/** `named`: such as `machine/cp-1`. Does not reject if it was approved before. */
export async function approve(
  named: string,
  flags: ApproveFlags,
  { abort, output }: SessionParts,
): Promise<void> {
  using client = await connect(flags, 'refit-control');
  // As the hooks name it.
  const title = named.replace('/', ` ${flags.namespace}/`);
  const object = title.replace(/^machine/i, 'Machine').replace(/set /i, 'Set ');
  const all = (await client.listAll(updaterSets, { abort })).items.filter(
    ({ spec }) => spec.uncovered === 'Ask',
  );
  const waiting = ({ status }: UpdaterSet) => (status?.uncovered ?? []).map((each) => each.object);
  const asking = all.filter((each) => waiting(each).includes(object));
  // A full list leaves some out.
  const mayAsk = (set: UpdaterSet) => waiting(set).length >= MOST && /^Machine(Set)? /.test(object);
  const sets = asking.length > 0 ? asking : all.filter(mayAsk);
  if (sets.length === 0) {
    const others = all.flatMap(waiting).join(', ') || 'nothing does';
    throw new RefitError(
      'REFIT_CONTROL',
      `${object} does not wait for approval; what waits: ${printable(others)}`,
    );
  }
  for (const { metadata, status } of sets) {
    const approved = [...new Set([...(status?.approved ?? []), object])];
    const patch = { metadata: { resourceVersion: metadata.resourceVersion }, status: { approved } };
    await client.patch(updaterSets, metadata.name, patch, {
      type: 'merge',
      subresource: 'status',
      abort,
    });
  }
  output.write(`${printable(object)} is approved: Cluster API replaces it when it asks next.\n`);
}
