/**
 * Finds the rule of a policy that applies to a pod: whether the drain evicts it, leaves it or waits for it, and in
 * which order.
 */
import type { KubeClient } from '../kube/client.ts';
import { type LabelSelector, namespaces, type Pod } from '../kube/resources.ts';
import { matchesLabels } from '../kube/selectors.ts';

export interface PodRule {
  /** A pod is selected if any entry matches its labels, its namespace and the labels of that namespace. */
  readonly pods: readonly {
    readonly selector?: LabelSelector;
    /** The names of the namespaces. If the list is absent, all namespaces match. */
    readonly namespaces?: readonly string[];
    readonly namespaceSelector?: LabelSelector;
  }[];
  /**
   * `leave` leaves the pod on the node. `wait` does not evict the pod either, but the drain lasts until the pod has
   * completed.
   */
  readonly action: 'evict' | 'leave' | 'wait';
  /**
   * Pods with a higher number are evicted only after all pods with a lower number are gone. The number is 0 for a pod
   * without a rule.
   */
  readonly turn: number;
}

export interface PodRules {
  /**
   * Reads the labels of namespaces that the rules need. Rejects if a namespace cannot be read, because a rule might
   * apply to the pods of that namespace.
   */
  readonly learn: (pods: readonly Pod[], abort: AbortSignal) => Promise<void>;
  /**
   * Returns the first rule that selects the pod; undefined if no rule selects it. The caller must call `learn` for the
   * pod first.
   */
  readonly ruleFor: (pod: Pod) => PodRule | undefined;
}

/**
 * Returns the rules together with the labels of the namespaces that they need. Each namespace is read once, and only if
 * a rule selects namespaces by their labels.
 */
export function podRulesOf(client: KubeClient, rules: readonly PodRule[] = []): PodRules {
  const needsNamespaces = rules.some(({ pods }) =>
    pods.some(({ namespaceSelector }) => namespaceSelector),
  );
  const known = new Map<string, Readonly<Record<string, string>>>();
  return {
    async learn(found, abort) {
      if (!needsNamespaces) return;
      const asked = new Set(found.map(({ metadata: { namespace = '' } }) => namespace));
      for (const name of asked) {
        if (known.has(name)) continue;
        const { metadata } = await client.get(namespaces, name, { abort });
        known.set(name, metadata.labels ?? {});
      }
    },
    ruleFor: ({ metadata: { namespace = '', labels } }) =>
      rules.find(({ pods }) =>
        pods.some(
          ({ selector = {}, namespaces: names, namespaceSelector = {} }) =>
            matchesLabels(selector, labels) &&
            (names?.includes(namespace) ?? true) &&
            matchesLabels(namespaceSelector, known.get(namespace)),
        ),
      ),
  };
}
