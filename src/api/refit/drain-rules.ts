/** Defines the schema of `spec.drain` of the UpgradePolicy. */
import { z } from 'zod';
import { choice, flag, LONGEST, list, object, optional, whole } from '../crd.ts';
import { boundedSelectorSchema, duration, rules } from './policy-values.ts';

/**
 * The maximum number of rules for pods, and of namespaces in a rule. Without this limit, a policy could make each drain
 * slow.
 */
const MANY = 100;

/** The largest number that the API server accepts in fields of the format `int32`. */
const MOST = 2_147_483_647;

const podRuleSchema = object('One rule. Without selectors and namespaces it selects every pod.', {
  selector: optional('The labels of the pods; all pods by default.', boundedSelectorSchema),
  namespaces: list(
    'The names of the namespaces; all by default.',
    z.string().max(LONGEST.namespace),
  ).meta({ 'x-kubernetes-list-type': 'set', maxItems: MANY }),
  behavior: z
    .enum(['Drain', 'Skip', 'WaitCompleted'])
    .describe(
      '`Drain`: the pod is evicted. `Skip`: the pod stays on the node. `WaitCompleted`: the pod is not evicted, and the drain waits until ' +
        'it has completed.',
    ),
  order: optional(
    'Pods with a lower number are gone before pods with a higher one are evicted; 0 by default.',
    z.int().min(-MOST).max(MOST),
  ),
}).meta(
  rules([
    "!has(self.order) || self.behavior == 'Drain'",
    '`order` needs the behavior Drain, because only such pods are evicted',
  ]),
);

export const drainSchema = object('How nodes are drained before their upgrade.', {
  enabled: flag('`false`: nodes are neither cordoned nor drained.'),
  deleteEmptyDirData: flag(
    'As in `kubectl drain`: `true`, the default, evicts pods with emptyDir volumes and loses their data. `false`: such pods block the drain.',
  ),
  force: flag(
    'As in `kubectl drain`: `true`, the default, evicts unmanaged pods, which nothing creates again. `false`: such pods block the drain.',
  ),
  gracePeriodSeconds: whole(
    "As in `kubectl drain`: seconds for each pod to terminate; the pod's own period by default.",
    86_400,
  ),
  onDeadline: choice(
    'What happens at `deadlines.drain`. `Wait`: the drain goes on without a limit. `Stop`, the default: the plan stops. `Skip`: the node fails. ' +
      '`SkipNode`: the node is uncordoned and left out. It does not count as failed, and `refit retry --skipped` upgrades it later. Plans of ' +
      'Rancher and Machines cannot record that a node was left out, so for them `SkipNode` means `Skip`.',
    'Wait',
    'Stop',
    'Skip',
    'SkipNode',
  ),
  zeroDisruptionBudgets: choice(
    'What happens to a node with pods of a PodDisruptionBudget that allows no disruption even while all its pods are healthy. `Try`, the default: ' +
      'as in `kubectl drain`, the node is cordoned, and the drain asks for the evictions until `deadlines.drain`, because an operator may ' +
      'change the budget when it sees the cordon or the eviction. `Wait`: the node is not cordoned before the budget allows the evictions.',
    'Try',
    'Wait',
  ),
  softTaint: flag(
    'Adds a taint with the effect `PreferNoSchedule` to nodes that wait for their turn, so that evicted pods move only once; `true` by default.',
  ),
  uncordon: choice(
    'Which nodes are uncordoned. `Ours`, the default: only nodes that Refit cordoned. `Always`: every node.',
    'Ours',
    'Always',
  ),
  startWith: choice(
    '`FewestBudgetPods`: among the workers that may start next, those with the fewest pods covered by a PodDisruptionBudget start first' +
      '. `order` and `waves` come before it, and `spread` after it. By default the workers keep the order of the plan.',
    'FewestBudgetPods',
  ),
  order: choice(
    '`PriorityClass`: pods with a lower priority are gone before pods with a higher one are evicted. By default only the `order` of the ' +
      'rules in `pods` counts.',
    'PriorityClass',
  ),
  pods: optional(
    'Rules for single pods. The first rule that selects a pod applies to it; a pod that no rule selects is evicted.',
    z.array(podRuleSchema).max(MANY),
  ),
  loadBalancers: optional(
    'Whether a node is taken out of external load balancers before its pods are evicted.',
    object('How a node is taken out of external load balancers before its drain.', {
      exclude: flag(
        '`true`: when Refit cordons a node, it adds the label `node.kubernetes.io/exclude-from-external-load-balancers`; with the cordon, Refit also removes the ' +
          'label. A label that the node already had stays. `false` is the default.',
      ),
      grace: duration(
        'How long the drain waits between the label and the first eviction; `30s` by default. It must be shorter than `deadlines.drain`.',
      ),
    }),
  ),
  volumes: optional(
    'Whether a drain waits for the volumes of the evicted pods.',
    object('How a drain waits for the volumes of the evicted pods.', {
      waitForDetach: flag(
        '`true`: after the last pod is gone, the drain waits until the volumes of the evicted pods are detached from the node, which needs ' +
          'the rights of deploy/rbac-volumes.yaml. `false` is the default.',
      ),
      timeout: duration(
        'After this time the drain goes on, even if volumes are still attached; `2m` by default. It must be shorter than `deadlines.drain`.',
      ),
    }),
  ),
  evictionRequests: choice(
    '`Use`: where the API server serves EvictionRequests (KEP-4563, alpha since Kubernetes v1.37), a drain creates one for each pod, and ' +
      'the controllers of Kubernetes evict the pod. This needs the rights of deploy/rbac-eviction-requests.yaml. Elsewhere, and for a pod ' +
      'whose request is refused, fails or is not worked on for 30 seconds, the drain evicts the pod itself, as it always does by default. ' +
      'It cannot be combined with `gracePeriodSeconds`. A node that drains itself does not use it.',
    'Use',
  ),
  waitForJobs: duration(
    'How long a drain waits for the pods of Jobs to complete before it evicts them, such as `30m`; by default it evicts them at once. ' +
      'It must be shorter than `deadlines.drain`.',
  ),
}).meta(
  rules(
    [
      '!has(self.startWith) || !has(self.enabled) || self.enabled',
      '`startWith` needs a drain, but `enabled` is false',
    ],
    [
      '!has(self.evictionRequests) || !has(self.gracePeriodSeconds)',
      '`evictionRequests` and `gracePeriodSeconds` exclude each other, because an EvictionRequest holds no grace period',
    ],
  ),
);
