/** Sets KubeOne's label on Nodes during a rollout, and removes it afterwards. All functions need the lock of Refit. */
import type { KubeClient } from '../../../kube/client.ts';
import { type Node, nodes } from '../../../kube/resources.ts';
import { ifFound, isConflict } from '../../../kube/status-error.ts';
import { RefitError } from '../../../util/errors.ts';
import { ownMember } from '../../../util/own-member.ts';
import {
  describeLabel,
  KUBEONE_LABEL,
  LABEL_OWNER,
  labelOf,
  labelStateOf,
} from '../plan/kubeone-label.ts';

const NOTHING = { labels: { [KUBEONE_LABEL]: null }, annotations: { [LABEL_OWNER]: null } };
const ANNOTATION_ONLY = { annotations: { [LABEL_OWNER]: null } };

/**
 * The number of successive conflicts after which a write of a label fails. A heartbeat of the kubelet may cause a
 * conflict if it is written between the read and the write, but not so many times.
 */
const MOST_CONFLICTS = 10;

export interface LabelTools {
  /** A client whose writes need the lock. */
  readonly writer: KubeClient;
  readonly abort?: AbortSignal | undefined;
}

/**
 * Sets the label on these Nodes. Skips names for which no Node exists. `owner` is the name of this run. If `takesOver`
 * is true, it first removes the labels that other owners have set on any Node.
 * @throws RefitError REFIT_REFUSED if another owner has set the label on one of these Nodes
 */
export async function setLabels(
  names: readonly string[],
  owner: string,
  takesOver: boolean,
  tools: LabelTools,
): Promise<void> {
  if (takesOver) await onAllNodes(tools, withoutForeign);
  for (const name of names) await changeNode(name, (node) => withLabel(node, owner), tools);
}

/** Removes the label from all Nodes on which a run of Refit has set it. Also removes the annotations of Refit whose label is gone. */
export async function removeLabels(tools: LabelTools): Promise<void> {
  await onAllNodes(tools, withoutOwn);
}

function withLabel(node: Node, owner: string): object | undefined {
  if (labelStateOf(node) !== 'foreign') return labelOf(owner);
  const found = `F4: in the meantime, a KubeOne upgrade has begun on ${describeLabel(node)}`;
  throw new RefitError(
    'REFIT_REFUSED',
    `${found}; finish it, then remove the label ${KUBEONE_LABEL}`,
  );
}

function withoutForeign(node: Node): object | undefined {
  return labelStateOf(node) === 'foreign' ? NOTHING : undefined;
}

function withoutOwn(node: Node): object | undefined {
  if (ownMember(node.metadata.annotations, LABEL_OWNER) === undefined) return undefined;
  return labelStateOf(node) === 'foreign' ? ANNOTATION_ONLY : NOTHING;
}

/** Returns the metadata for a merge patch; undefined if the Node does not change. */
type Change = (node: Node) => object | undefined;

async function onAllNodes(tools: LabelTools, change: Change): Promise<void> {
  // Without a transform, the Nodes keep their managed fields. These fields show who set the label.
  const { items } = await tools.writer.listAll(nodes, { abort: tools.abort });
  const touched = items.filter((node) => change(node) !== undefined);
  for (const { metadata } of touched) await changeNode(metadata.name, change, tools);
}

/**
 * Changes the Node. The patch contains the resourceVersion of the Node that `change` received. If the Node has changed
 * since then, it is read again.
 */
async function changeNode(
  name: string,
  change: Change,
  { writer, abort }: LabelTools,
): Promise<void> {
  for (let conflicts = 0; ; conflicts += 1) {
    const node = await ifFound(writer.get(nodes, name, { abort }));
    const metadata = node && change(node);
    if (node === undefined || metadata === undefined) return;
    const patch = { metadata: { ...metadata, resourceVersion: node.metadata.resourceVersion } };
    try {
      await ifFound(writer.patch(nodes, name, patch, { type: 'merge', abort }));
      return;
    } catch (error) {
      if (!isConflict(error) || conflicts >= MOST_CONFLICTS) throw error;
    }
  }
}
