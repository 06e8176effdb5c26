/** Rules for some pods of a drain: which stay, which end by themselves, and which go first. */
import type { KubeClient } from '../kube/client.ts';
import { type LabelSelector, namespaces, type Pod } from '../kube/resources.ts';
import { matchesLabels } from '../kube/selectors.ts';

export interface PodRule {
  /** Pods that any entry selects, by their labels and those of their namespace. */
  readonly pods: readonly {
    readonly selector?: LabelSelector;
    readonly namespaceSelector?: LabelSelector;
  }[];
  /** `wait`: the pod stays, and the drain lasts until it has ended by itself. */
  readonly action: 'evict' | 'leave' | 'wait';
  /** Pods of a lower turn are gone before others are evicted; without a rule it is 0. */
  readonly turn: number;
}

/** Caches each answer: one request for each namespace, and only where a rule asks for its labels. */
export function podRulesOf(client: KubeClient, rules: readonly PodRule[] = []) {
  const isAsking = rules.some(({ pods }) =>
    pods.some(({ namespaceSelector }) => namespaceSelector),
  );
  const known = new Map<string, Readonly<Record<string, string>>>();
  return {
    /** Rejects if a namespace cannot be read: its pods might be those that must stay. */
    async learn(pods: readonly Pod[], abort: AbortSignal): Promise<void> {
      if (!isAsking) return;
      const asked = new Set(pods.map(({ metadata: { namespace = '' } }) => namespace));
      for (const name of asked) {
        if (known.has(name)) continue;
        const { metadata } = await client.get(namespaces, name, { abort });
        known.set(name, metadata.labels ?? {});
      }
    },
    /** The first that selects the pod. */
    ruleFor: ({ metadata: { namespace = '', labels } }: Pod): PodRule | undefined =>
      rules.find(({ pods }) =>
        pods.some(
          ({ selector = {}, namespaceSelector = {} }) =>
            matchesLabels(selector, labels) &&
            matchesLabels(namespaceSelector, known.get(namespace)),
        ),
      ),
  };
}
