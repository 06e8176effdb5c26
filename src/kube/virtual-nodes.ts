/**
 * Recognizes virtual Nodes: Nodes behind which there is no kubelet on a host, such as those of virtual-kubelet and of KWOK.
 * The rule stands in docs/guides/policy.md.
 */
import { onceForEach } from '../util/memo.ts';
import { type KubeObject, kubeletVersionOf, type Node } from './resources.ts';

/** Source: its documentation and its Node objects (`type: virtual-kubelet`, the taint `virtual-kubelet.io/provider=azure`). */
const VIRTUAL_KUBELET = { label: 'type', value: 'virtual-kubelet' } as const;
const PROVIDER_TAINT = 'virtual-kubelet.io/provider';
/** KWOK manages the Nodes that have it. */
const KWOK_ANNOTATION = 'kwok.x-k8s.io/node';
/** Parts of the versions that they report: `kwok-v0.7.0`; `v1.19.10-vk-azure-aci-1.4.8`. */
const VERSION_OF_OTHERS = /^kwok-|-vk-/;

type Shown = KubeObject & Pick<Node, 'spec' | 'status'>;

/**
 * What shows that the Node is virtual, for people; undefined for a Node that may be a host. Only a mark shows it: a version
 * that cannot be read is no mark, because a kubelet that was built without one reports such a text, too.
 * Every decision asks this about every Node, so it is found once for each object.
 */
export const virtualBy = onceForEach((node: Shown): string | undefined => {
  const { labels, annotations } = node.metadata;
  const { label, value } = VIRTUAL_KUBELET;
  if (labels?.[label] === value) return `label ${label}=${value}`;
  if (node.spec?.taints?.some(({ key }) => key === PROVIDER_TAINT) === true)
    return `taint ${PROVIDER_TAINT}`;
  if (annotations?.[KWOK_ANNOTATION] !== undefined) return `annotation ${KWOK_ANNOTATION}`;
  const version = kubeletVersionOf(node) ?? '';
  return VERSION_OF_OTHERS.test(version) ? `kubelet version ${version.slice(0, 64)}` : undefined;
});
