/**
 * Finds out who set the label with which KubeOne marks the Nodes that it upgrades. Refit sets the same label during a
 * rollout, because `kubeone apply` does not know the Lease of Refit. Refit also sets an annotation that names its run.
 */
import type { Node } from '../../../kube/resources.ts';
import { ownMember } from '../../../util/own-member.ts';
import { type Finding, warn } from '../../../versions/findings.ts';

/** KubeOne sets this label with an empty value, also on workers. `kubeone apply` refuses to start if a control-plane Node has it. */
export const KUBEONE_LABEL = 'kubeone.io/upgrade-in-progress';
/** This annotation names the run of Refit that set the label. */
export const LABEL_OWNER = 'upgrade.refit.dev/kubeone-label';

type LabelState = 'absent' | 'ours' | 'foreign';

/**
 * Returns who set the label. The annotation alone is no proof: if a person removes the label, the annotation stays, and
 * KubeOne may then set the label again. So the function also checks the field managers of the Node. The Node must not
 * come from the cache of an informer, because such caches omit the field managers.
 */
export function labelStateOf({ metadata }: Node): LabelState {
  if (ownMember(metadata.labels, KUBEONE_LABEL) === undefined) return 'absent';
  if (ownMember(metadata.annotations, LABEL_OWNER) === undefined) return 'foreign';
  const isOthers = settersOf({ metadata }).some(({ manager }) => !manager.startsWith('refit'));
  return isOthers ? 'foreign' : 'ours';
}

/** Returns the label and the annotation for a merge patch. */
export function labelOf(owner: string): Pick<Node['metadata'], 'labels' | 'annotations'> {
  return { labels: { [KUBEONE_LABEL]: '' }, annotations: { [LABEL_OWNER]: owner } };
}

/**
 * Returns a finding of rule F4 if Nodes have labels that Refit did not set. If `takesOver` is true, the finding is only
 * a warning.
 */
export function labelFindings(nodes: readonly Node[], takesOver: boolean): Finding[] {
  const foreign = nodes.filter((node) => labelStateOf(node) === 'foreign');
  if (foreign.length === 0) return [];
  const where = foreign.map(describeLabel).join(', ');
  if (takesOver) return [warn('F4', `--force takes over the label ${KUBEONE_LABEL} on ${where}`)];
  const message = `a KubeOne upgrade is in progress on ${where}; finish it, then remove the label ${KUBEONE_LABEL}`;
  return [{ rule: 'F4', severity: 'hard', message, lift: 'kubeOneLabel' }];
}

/**
 * Returns a text with the name of the Node and everything that is known about who set the label.
 */
export function describeLabel({ metadata }: Node): string {
  const [setter] = settersOf({ metadata });
  if (setter === undefined) return `${metadata.name} (the Node does not say who set it)`;
  const time = setter.time === undefined ? '' : `, last at ${setter.time}`;
  return `${metadata.name} (written by ${setter.manager}${time})`;
}

interface Setter {
  readonly manager: string;
  readonly time: string | undefined;
}

function settersOf({ metadata: { managedFields = [] } }: Pick<Node, 'metadata'>): Setter[] {
  return managedFields.flatMap(({ manager = 'an unnamed client', time, fieldsV1 }) => {
    const labels = fieldsV1?.['f:metadata']?.['f:labels'];
    return ownMember(labels, `f:${KUBEONE_LABEL}`) === undefined ? [] : [{ manager, time }];
  });
}
