/** Tests in a real browser that the dashboard runs the failed hooks of a plan again, as `refit retry PLAN` does. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createNode, installDefinitions } from '../../sandbox/cluster/objects.ts';
import { startSandboxPlane } from '../../sandbox/cluster/plane.ts';
import { plans } from '../../src/api/autopilot/plan.ts';
import { nodeRollouts, upgradePolicies } from '../../src/api/kinds.ts';
import type { NodeRollout } from '../../src/api/refit/node-rollout.ts';
import { autopilot } from '../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import { placeOf } from '../../src/engine/contract/node-rollout-place.ts';
import { planHookRuns } from '../../src/engine/gates/hook-runs.ts';
import { controlsOn, RETRY_HOOKS_ANNOTATION } from '../../src/engine/model/controls.ts';
import type { Rollout } from '../../src/engine/model/rollout.ts';
import type { RolloutPolicy } from '../../src/engine/policy/rollout-policy.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { rfc3339, systemClock } from '../../src/util/clock.ts';
import { buildPlan, buildUpdate, listed } from '../support/builders/plans.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { startBrowser, startDashboard, visit } from './browser.ts';

const SAID = 'hooks.example answered 422: the pager is silent';

/**
 * Starts a cluster with a plan whose hook `freeze` failed before the first node started. The NodeRollout shows this as
 * a leader would write it.
 */
async function startClusterWithFailedHook() {
  const folder = await mkdtemp(join(tmpdir(), 'refit-hooks-'));
  const plane = await startSandboxPlane(folder);
  const kubeconfig = await plane.kubeconfig('admin');
  const client = createClient(await loadClusterConfig({ path: kubeconfig }), { userAgent: 'test' });
  onTestFinished(async () => {
    client[Symbol.dispose]();
    await plane.stop();
    await rm(folder, { recursive: true });
  });
  await installDefinitions(client, systemClock);
  await createNode(client, 'w1', {});
  const webhook = { url: 'https://hooks.example', secretName: 's' };
  const hooks = [{ name: 'freeze', when: 'BeforePlan', webhook, timeout: '5m' } as const];
  const { metadata, ...policy } = buildUpgradePolicy('careful', { hooks });
  await client.create(upgradePolicies, { ...policy, metadata: { name: metadata.name } });
  const k0supdate = buildUpdate({ targets: { workers: listed('w1') } });
  const { metadata: named, ...spec } = buildPlan({ commands: [{ k0supdate }] });
  const plan = await client.create(plans, { ...spec, metadata: { name: named.name } });
  const place = placeOf(autopilot, plan);
  if (place === undefined) throw new Error('a Plan of k0s has a NodeRollout');
  const rollout = { source: { uid: plan.metadata.uid }, id: 'id1', stages: [] } as unknown;
  const read = { hooks: [{ name: 'freeze', when: 'beforePlan' }] } as unknown;
  const [run] = planHookRuns(
    { rollout: rollout as Rollout, plan: { controls: controlsOn(plan) } },
    read as RolloutPolicy,
    'beforePlan',
  );
  const failed = {
    hook: 'freeze',
    id: run?.id ?? '',
    state: 'Failed',
    message: SAID,
    since: rfc3339(Date.now()),
  } as const;
  const status: NodeRollout['status'] = { phase: 'running', hooks: [failed] };
  const { uid = '', name } = plan.metadata;
  const { namespace } = place;
  await client.create(
    nodeRollouts,
    {
      apiVersion: 'upgrade.refit.dev/v1alpha1',
      kind: 'NodeRollout',
      metadata: { name: place.name, namespace },
      spec: { plan: { apiVersion: plan.apiVersion ?? '', kind: 'Plan', name, uid } },
    },
    { namespace },
  );
  const toStatus = { namespace, type: 'merge', subresource: 'status' } as const;
  await client.patch(nodeRollouts, place.name, { status }, toStatus);
  const isRetried = async (): Promise<boolean> =>
    (await client.get(plans, name)).metadata.annotations?.[RETRY_HOOKS_ANNOTATION] !== undefined;
  return { kubeconfig, isRetried };
}

test('the button runs the failed hooks of the plan again, and goes away', async () => {
  const { kubeconfig, isRetried } = await startClusterWithFailedHook();
  const browser = await startBrowser();
  onTestFinished(async () => await browser.close());
  await using dashboard = await startDashboard(kubeconfig, { allowActions: true });
  await using visited = await visit(browser, dashboard.url);
  const { page, strays } = visited;
  const group = page.getByRole('group', { name: 'Control the hooks of the plan' });
  const button = group.getByRole('button', { name: 'Retry hooks: freeze', exact: true });
  await button.waitFor();
  await page.getByText(SAID).first().waitFor();
  expect(await isRetried()).toBe(false);
  await button.click();
  await page
    .getByText('The hooks of Plan autopilot (id1) will run again: freeze failed.')
    .waitFor();
  expect(await isRetried()).toBe(true);
  // No leader runs here: the NodeRollout still shows the failure from before the retry.
  await button.waitFor({ state: 'detached' });
  expect(strays).toEqual([]);
});

test('without --allow-actions the failed hooks are shown, and no button retries them', async () => {
  const { kubeconfig } = await startClusterWithFailedHook();
  const browser = await startBrowser();
  onTestFinished(async () => await browser.close());
  await using dashboard = await startDashboard(kubeconfig);
  await using visited = await visit(browser, dashboard.url);
  await visited.page.getByText(SAID).first().waitFor();
  expect(await visited.page.getByRole('button', { name: /^Retry hooks/ }).count()).toBe(0);
});
