/**
 * Tests that no code takes each answer with the code 403 for a missing right. A quota or an admission rule refuses
 * writes with the same code, and no role helps then. `isMissingRight` tells these cases apart.
 */
import { expect, test } from 'vitest';
import { productFiles } from './tree.ts';

/** Files that only ask for the right to read. Quotas and admission do not see such a request. */
const READ = [
  'src/agent/maintenance/lease-delegation.ts',
  'src/cli/dashboard/follow-plans.ts',
  'src/cli/logs/logs-command.ts',
  'src/cli/report/report-command.ts',
  'src/cli/status/load.ts',
  'src/cli/status/status-session.ts',
  'src/cli/upgrade/failed-runs.ts',
  'src/composition/agent/serve-host.ts',
  'src/composition/controller-process.ts',
  'src/coordination/kured-lock.ts',
  'src/coordination/tool-presence.ts',
  'src/dialects/autopilot/command/controller-command.ts',
  'src/dialects/autopilot/command/migration-facts.ts',
  'src/dialects/autopilot/command/upgrade-k0s.ts',
  'src/dialects/capi/command/held-owners.ts',
  'src/dialects/capi/command/machine-controls.ts',
  'src/dialects/capi/command/roll-back-machines.ts',
  'src/dialects/capi/command/upgrade-machines.ts',
  'src/dialects/capi/plan/machine-rules.ts',
  'src/dialects/capi/plan/remembered-runs.ts',
  'src/dialects/kubeadm/command/upgrade-session.ts',
  'src/dialects/kubeadm/plan/machine-pools.ts',
  'src/ready/api-servers.ts',
  'src/health/ask-resources.ts',
  'src/health/component-monitor.ts',
  'src/kube/read-secret.ts',
  'src/kube/try-list.ts',
  'src/kube/watch/retry-pace.ts',
  'src/ready/asking.ts',
];

/** Files that treat each refusal alike, and quote the answer if somebody must know it. */
const ALIKE = [
  // It asks for the words of a missing right, too.
  'src/kube/missing-right.ts',
  // A namespace that cannot be created may exist already.
  'src/composition/readiness-asker.ts',
  'src/dialects/capi/command/capi-extension.ts',
  'src/dialects/kubeadm/plan/host-report.ts',
  'src/dialects/kubeadm/plan/serving-certificates.ts',
  'src/drain/running-drains.ts',
  'src/engine/execute/writes.ts',
  'src/engine/policy/policy-controller.ts',
  'src/engine/report/node-rollout-writer.ts',
  'src/engine/report/notifier.ts',
  // It repeats each refused request for some seconds, and then asks `isMissingRight` for the words.
  'src/install/apply-definitions.ts',
  'src/kube/status-error.ts',
  'src/kube/template-jobs.ts',
];

test('only files that read, or that treat each refusal alike, ask for the code 403 alone', () => {
  const asking = productFiles().filter(({ text }) =>
    /\b(?:isForbidden|ifAllowed)\(|\((?:isForbidden|ifAllowed)\)|(?:===|\[)\s*403\b/.test(text),
  );
  const found = asking
    .map(({ path }) => path)
    // These files answer requests with the code, or read it without a client.
    .filter((path) => !path.startsWith('src/cli/served-dashboard/'));
  expect(found.toSorted()).toEqual([...READ, ...ALIKE].toSorted());
});
