/**
 * The rows of docs/reference/features.md: the features that people expect of a system that upgrades nodes, and to what
 * extent Refit has them.
 */

export interface Feature {
  readonly name: string;
  readonly state: 'yes' | 'partly' | 'no';
  /**
   * The proof of the state: files of tests, or commands of `npm run` or `refit`. It is empty only if the state is `no`.
   */
  readonly evidence: readonly string[];
  readonly remark?: string;
}

export interface FeatureGroup {
  readonly title: string;
  readonly features: readonly Feature[];
}

const T = 'test/testenv';
/** The scenes that are played in every dialect. */
const SCENES = 'test/dialects/dialects.test.ts';

function yes(name: string, evidence: readonly string[], remark?: string): Feature {
  return { name, state: 'yes', evidence, ...(remark === undefined ? {} : { remark }) };
}

function partly(name: string, evidence: readonly string[], remark: string): Feature {
  return { name, state: 'partly', evidence, remark };
}

function no(name: string, remark?: string): Feature {
  return { name, state: 'no', evidence: [], ...(remark === undefined ? {} : { remark }) };
}

/** The numbers of the rows count from 1 through all groups, so a new row belongs at the end of the last group. */
export const FEATURES: readonly FeatureGroup[] = [
  {
    title: 'Planning',
    features: [
      yes(
        'An object that declares the upgrade',
        [SCENES, `${T}/plan.test.ts`, `${T}/crds.test.ts`],
        'kubeadm: a manifest file',
      ),
      yes('New versions found in a channel', [
        `${T}/updates.test.ts`,
        `${T}/cattle-channel.test.ts`,
      ]),
      partly(
        'Versions that are blocked or depend on conditions',
        [`${T}/version-change.test.ts`],
        'version rules, and withdrawn or held releases of `refit serve`; no edges and no conditions',
      ),
      yes(
        'Several minor versions with one object',
        [`${T}/updates.test.ts`, `${T}/kubeadm-hops.test.ts`],
        'an UpdateConfig, or one `refit kubeadm` run for each hop',
      ),
      yes('Check for removed APIs', [
        `${T}/removed-apis.test.ts`,
        `${T}/ready.test.ts`,
        'src/ready/checks/apis.test.ts',
      ]),
      yes('Rules for version skew', [
        `${T}/version-change.test.ts`,
        'src/engine/gates/registry-version-gates.test.ts',
      ]),
      yes(
        'Downloads before the turn of a node',
        [`${T}/autopilot/prefetch.test.ts`, 'src/dialects/cattle/plan/image-pull.test.ts'],
        'Plans of Rancher: the image, if it installs K3s or RKE2',
      ),
    ],
  },
  {
    title: 'Targets',
    features: [
      yes('Selection by labels', [`${T}/autopilot/quorum.test.ts`]),
      yes('The order of a list of nodes is kept', ['src/engine/schedule/slots.test.ts']),
      yes('Per-node hold', [SCENES, `${T}/holds.test.ts`, 'src/cli/status/render-held.test.ts']),
      yes(
        'Nodes that join during a rollout',
        [
          SCENES,
          `${T}/cattle-suite.test.ts`,
          `${T}/new-nodes.test.ts`,
          'src/engine/assess/joined-targets.test.ts',
        ],
        'Plans of Rancher take them; a Plan of k0s takes workers with `newNodes: Include`, and goes on without deleted ones with `goneNodes: Skip`',
      ),
      yes(
        'Another version for single nodes',
        [SCENES, `${T}/pins.test.ts`, 'src/engine/assess/pinned-targets.test.ts'],
        '`versions.pin` of a policy',
      ),
    ],
  },
  {
    title: 'Order and concurrency',
    features: [
      yes(
        'Control plane before workers',
        [`${T}/plan.test.ts`, `${T}/cattle-versions.test.ts`, `${T}/cattle-suite-policy.test.ts`],
        'Plans of Rancher: if they install K3s or RKE2; other images with a policy',
      ),
      yes('Control plane one at a time, with quorum', [
        `${T}/autopilot/quorum.test.ts`,
        `${T}/kubeadm-etcd.test.ts`,
      ]),
      yes('Concurrency as a number', [SCENES, 'src/engine/schedule/slots.test.ts']),
      yes(
        'Concurrency as a percentage',
        [SCENES, 'src/engine/schedule/slots.test.ts', `${T}/crds.test.ts`],
        '`maxUnavailable` of a policy, in addition to the number in the plan',
      ),
      yes('Nodes that are unavailable already count', [
        SCENES,
        'src/cli/preview/preview-command-batches.test.ts',
        `${T}/cattle-suite-policy.test.ts`,
      ]),
      yes(
        'Order and limits by failure domain',
        [
          SCENES,
          'src/engine/gates/registry-sentences.test.ts',
          'src/engine/schedule/waves.test.ts',
          `${T}/budget-order.test.ts`,
        ],
        '`order`, `spread`, `perDomain`; nodes with the fewest pods of disruption budgets first (`drain.startWith`)',
      ),
      yes(
        'Canaries and waves',
        [SCENES, `${T}/waves.test.ts`, 'src/engine/schedule/waves.test.ts'],
        'by labels, number or share, each with a failure budget',
      ),
      yes(
        'Time for a node to settle before the next',
        [SCENES, 'src/engine/gates/rest-over.test.ts', 'src/engine/schedule/waves.test.ts'],
        '`settle` of a policy and of a wave',
      ),
      yes(
        'Exclusion across plans and other tools',
        [SCENES, `${T}/both-dialects.test.ts`, `${T}/coordinate.test.ts`],
        'plans of all dialects; cluster autoscaler, Karpenter, GPU Operator; the lock of Kured and a Lease, which Refit and other tools take in turn',
      ),
    ],
  },
  {
    title: 'Gates',
    features: [
      yes('All API servers are ready', [`${T}/autopilot/quorum.test.ts`]),
      yes(
        'Node is Ready at the right version before the next starts',
        [SCENES, `${T}/autopilot/silent-kubelet.test.ts`, `${T}/cattle-versions.test.ts`],
        'Plans of Rancher: if they install K3s or RKE2; other images: Ready only',
      ),
      yes(
        'Evictions respect disruption budgets',
        [SCENES, `${T}/drain.test.ts`, `${T}/eviction-requests.test.ts`],
        'the eviction subresource, or EvictionRequests (alpha) with `drain.evictionRequests`',
      ),
      yes(
        'Warns before the drain about budgets that allow no disruption',
        [SCENES, `${T}/drain.test.ts`, `${T}/lifted-budgets.test.ts`],
        'an operator may change the budget when it sees the cordon; `drain.zeroDisruptionBudgets: Wait` prevents the cordon',
      ),
      yes(
        'Health checks of the user',
        [
          SCENES,
          `${T}/health-resources.test.ts`,
          `${T}/health-daemon-sets.test.ts`,
          `${T}/health-gates.test.ts`,
          `${T}/health-jobs.test.ts`,
        ],
        'objects by CEL, DaemonSets, HTTP, metrics, Jobs',
      ),
      yes(
        'Alerts stop a rollout',
        [`${T}/health-gates.test.ts`, 'src/health/ask-servers.test.ts'],
        'of Prometheus or Alertmanager, by their labels',
      ),
      no('Canaries compared with a control group'),
      yes('Check of disk space and resources', [
        'src/agent/download/disk-room.test.ts',
        'src/dialects/kubeadm/plan/preflight-refusals.test.ts',
      ]),
      yes('Downloads are reachable before the first cordon', [`${T}/updates.test.ts`]),
      yes(
        'Snapshot of etcd before the control plane',
        [
          `${T}/kubeadm-etcd.test.ts`,
          `${T}/kubeadm-restore.test.ts`,
          'test/agent/etcd-snapshot.test.ts',
        ],
        'kubeadm, and controllers of k0s by a policy',
      ),
    ],
  },
  {
    title: 'What happens on a node',
    features: [
      yes('In place, the machine keeps its identity', [SCENES, `${T}/agent.test.ts`]),
      yes('No reboot', [`${T}/agent.test.ts`, `${T}/kubeadm-drain.test.ts`]),
      yes(
        'Without a drain',
        ['src/engine/assess/choose-drain-action.test.ts'],
        '`drain.enabled: false`',
      ),
      yes(
        'Hooks before and after',
        [
          SCENES,
          `${T}/hooks.test.ts`,
          `${T}/hooks-plan.test.ts`,
          `${T}/hooks-webhook.test.ts`,
          `${T}/hooks-drain.test.ts`,
          `${T}/capi-updaters.test.ts`,
        ],
        'Jobs and webhooks before the plan, before the drain, between drain and restart, after the upgrade of each node, and after the plan',
      ),
      yes(
        'Waits for jobs and critical pods',
        [SCENES, `${T}/drain-rules.test.ts`, `${T}/capi-rules.test.ts`],
        '`drain.pods`, `waitForJobs`',
      ),
      yes(
        'Waits until volumes are detached',
        [`${T}/drain-production.test.ts`, 'src/drain/volumes.test.ts'],
        '`drain.volumes`, where the leader drains',
      ),
      yes(
        'Takes a node out of load balancers first',
        [SCENES, `${T}/drain-production.test.ts`],
        '`drain.loadBalancers`',
      ),
      yes('A cordon of somebody else stays', [
        SCENES,
        `${T}/drain.test.ts`,
        `${T}/capi-drain.test.ts`,
      ]),
      yes('Single-node clusters, and controllers that run pods', [
        `${T}/autopilot/single.test.ts`,
        `${T}/autopilot/controller-worker.test.ts`,
      ]),
    ],
  },
  {
    title: 'Failures',
    features: [
      yes('Time limit for each node', [SCENES, 'src/engine/assess/target-deadlines.test.ts']),
      yes(
        'Automatic retries',
        [SCENES, `${T}/retry-policy.test.ts`, 'src/agent/download/fetch.test.ts'],
        '`retry` of a policy for nodes; downloads, writes and evictions everywhere',
      ),
      yes(
        'Failure budget',
        [SCENES, `${T}/failure-budget.test.ts`, 'src/engine/assess/budget.test.ts'],
        'number or share, of the plan or a wave; consecutive failures',
      ),
      yes(
        'Leaves out a node that cannot be drained',
        [SCENES, 'src/engine/assess/skipped-nodes.test.ts', 'src/cli/status/render-held.test.ts'],
        '`drain.onDeadline: SkipNode`; Plans of Rancher and Machines cannot record it',
      ),
      yes('Pause and resume', [
        SCENES,
        `${T}/controls.test.ts`,
        `${T}/kubeadm-controls.test.ts`,
        `${T}/capi-controls.test.ts`,
      ]),
      yes('Abort that cleans up', [SCENES, `${T}/controls.test.ts`]),
      yes(
        'A node goes back by itself',
        [
          `${T}/agent.test.ts`,
          `${T}/autopilot/silent-kubelet.test.ts`,
          'test/agent/kubeadm-roll-back.test.ts',
          'test/agent/kubeadm-static-pods.test.ts',
        ],
        'k0s, and kubelet and containerd of kubeadm. kubeadm restores static pods while it runs. Refit restores them after that, within the same minor version only. With Plans of Rancher, the image decides',
      ),
      yes(
        'The fleet goes back with a plan',
        [
          SCENES,
          `${T}/rollback.test.ts`,
          `${T}/cattle-rollback.test.ts`,
          `${T}/kubeadm-back.test.ts`,
          `${T}/roll-back-policy.test.ts`,
          `${T}/capi-rollback.test.ts`,
        ],
        '`refit rollback` for Plans of k0s and Rancher, `onFailure: RollBack` of a policy for Plans of k0s, `refit kubeadm apply --back` within a minor version. For Machines of Cluster API, `refit rollback` prints the change of their owner, which decides their version; it writes nothing',
      ),
      yes('A restarted controller continues', [
        SCENES,
        `${T}/leader-gone.test.ts`,
        `${T}/leader-loss.test.ts`,
      ]),
      yes('Every step survives a crash', ['test/agent/crash-points.test.ts', 'npm run lab']),
    ],
  },
  {
    title: 'Windows',
    features: [
      yes('Recurring windows', [SCENES, `${T}/why.test.ts`, `${T}/updates.test.ts`]),
      yes('Named time zones', ['src/util/maintenance-windows.test.ts']),
      yes('Windows across midnight', ['src/util/maintenance-windows.test.ts']),
      yes('A closed window stops a rollout between nodes', [
        SCENES,
        `${T}/cattle-suite-policy.test.ts`,
      ]),
      yes(
        'Nothing starts that cannot finish in the window',
        [
          `${T}/window-too-short.test.ts`,
          'src/engine/gates/registry-policy-gates.test.ts',
          'src/dialects/autopilot/plan/autopilot-signal-earlier.test.ts',
        ],
        'the expected time comes from earlier nodes, and for the first nodes from earlier plans',
      ),
      yes(
        'Blackouts, and opening a closed window once',
        [SCENES, `${T}/holds.test.ts`, `${T}/crds.test.ts`],
        '`refit start --now --for 2h`',
      ),
    ],
  },
  {
    title: 'Sources and trust',
    features: [
      yes('Digests', ['test/attacks/wrong-bytes.test.ts']),
      no('Signatures checked on the node', 'packages of kubeadm: as far as apt or dnf checks them'),
      no('Signed metadata that expires'),
      partly(
        'Commands to a node are authenticated',
        [`${T}/admission-policy.test.ts`],
        'an admission policy lets only leaders write signals; the node checks no author',
      ),
      yes('Without the Internet', [`${T}/autopilot/airgap.test.ts`, `${T}/updates.test.ts`]),
      yes('Broken downloads are resumed', ['src/agent/download/fetch.test.ts']),
      no('Delta updates'),
      no('Distribution between nodes'),
      no('Versions chosen by known vulnerabilities'),
    ],
  },
  {
    title: 'What it shows',
    features: [
      yes(
        'Standard conditions',
        [SCENES, `${T}/node-rollout.test.ts`],
        'NodeRollout, for plans of every dialect',
      ),
      yes('Events', [`${T}/plan.test.ts`]),
      yes('Metrics', ['src/runtime/metrics.test.ts']),
      yes(
        'Dashboards and alerts',
        ['tools/deploy/monitoring.test.ts', `${T}/chart.test.ts`, `${T}/dashboard-served.test.ts`],
        'for Grafana and Prometheus; `refit dashboard`, also served by the controller',
      ),
      yes(
        'Traces',
        [`${T}/traces.test.ts`, `${T}/exemplars.test.ts`],
        'OTLP over HTTP, one trace for each run; exemplars in OpenMetrics',
      ),
      yes(
        'Notifications',
        [SCENES, `${T}/notify.test.ts`, `${T}/email.test.ts`],
        'Slack, Teams, Matrix, e-mail and webhooks',
      ),
      yes('Silences its own alerts', [`${T}/silences.test.ts`], 'for each node, as a lease'),
      yes('History', [SCENES, `${T}/node-rollout.test.ts`], 'the last ten runs of a plan'),
    ],
  },
  {
    title: 'How people use it',
    features: [
      yes('Preview of order and impact', [
        SCENES,
        'src/cli/preview/preview-command-batches.test.ts',
        `${T}/why.test.ts`,
        `${T}/ready-room.test.ts`,
      ]),
      yes('Progress and remaining time', [
        'src/cli/status/sentences-progress.test.ts',
        `${T}/node-rollout.test.ts`,
      ]),
      yes('Command line', ['test/repo/cli.test.ts']),
      yes('Useful columns of kubectl', [`${T}/node-rollout.test.ts`]),
      yes('Says why it waits', [SCENES, `${T}/why.test.ts`, 'test/repo/runbook.test.ts']),
      yes(
        'Works with GitOps',
        ['test/repo/gitops-page.test.ts', `${T}/node-rollout.test.ts`],
        'kubeadm is a command',
      ),
    ],
  },
  {
    title: 'Security',
    features: [
      yes('An agent can change its own node only', [`${T}/roles.test.ts`]),
      yes('Admission rules beyond the schema', [
        `${T}/crds.test.ts`,
        `${T}/admission-k0s-plans.test.ts`,
      ]),
      no('Teams own a part of the nodes'),
      partly(
        'Two people approve',
        [`${T}/kubeadm.test.ts`, `${T}/capi-updaters.test.ts`],
        '`refit kubeadm apply --digest`, `refit approve`; one person may do both',
      ),
    ],
  },
  {
    title: 'Size',
    features: [
      yes('Status does not have to fit into one object', [
        `${T}/plan-size.test.ts`,
        `${T}/autopilot/large-plan.test.ts`,
      ]),
      yes('Published test of scale', ['npm run bench']),
      partly(
        'Several clusters',
        [`${T}/capi-clusters.test.ts`],
        'shares of clusters in a channel; no order between clusters',
      ),
    ],
  },
];
