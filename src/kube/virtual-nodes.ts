/**
 * Recognizes virtual Nodes. Behind such a Node there is no kubelet on a host. Examples are the
 * Nodes of virtual-kubelet and of KWOK. docs/guides/policy/how-many.md states the rule.
 */
import { onceForEach } from '../util/memo.ts';
import { type KubeObject, kubeletVersionOf, type Node } from './resources.ts';

/**
 * The label comes from the documentation of virtual-kubelet, and the taint
 * (`virtual-kubelet.io/provider=azure`) from its Node objects.
 */
const VIRTUAL_KUBELET = { label: 'type', value: 'virtual-kubelet' } as const;
const PROVIDER_TAINT = 'virtual-kubelet.io/provider';
/** KWOK manages the Nodes that have this annotation. */
const KWOK_ANNOTATION = 'kwok.x-k8s.io/node';
/** Matches versions such as `kwok-v0.7.0` and `v1.19.10-vk-azure-aci-1.4.8`. */
const VERSION_OF_OTHERS = /^kwok-|-vk-/;

type Shown = KubeObject & Pick<Node, 'spec' | 'status'>;

/**
 * Returns the evidence that the Node is virtual, as text for people; undefined if the Node may be a host. An unreadable
 * version is no evidence, because a kubelet that was built without a version reports such a text, too. The result is
 * computed once for each object, because every decision needs it for every Node.
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
