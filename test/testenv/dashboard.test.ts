/**
 * Tests `refit dashboard` in a browser on a real API server, with the documented rights of viewer and operator, and
 * with fewer rights.
 */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { plans } from '../../src/api/autopilot/plan.ts';
import { PAUSE_ANNOTATION } from '../../src/engine/model/controls.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { startBrowser, startDashboard, visit } from '../ui/browser.ts';
import { apply, installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess } from './refit-process.ts';

let admin: KubeClient;
let browser: Browser;
let controller: RefitProcess;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  browser = await startBrowser();
  const path = await kubeconfigFor('controller');
  controller = new RefitProcess('controller', '--kubeconfig', path, '--lease-duration', '5s');
});
afterAll(async () => {
  expect(await controller.stop('SIGTERM')).toBe(0);
  await browser.close();
  admin.close();
});

async function isPaused(): Promise<boolean> {
  const { metadata } = await admin.get(plans, 'autopilot');
  return metadata.annotations?.[PAUSE_ANNOTATION] !== undefined;
}

test('a viewer sees everything, and is refused each action with the right that is missing', async () => {
  await using puppets = await Puppets.create(admin, 'dashboard-v1', 'dashboard-v2');
  await puppets.plan(1);
  await puppets.says('dashboard-v1', 'Restart');
  const kubeconfig = await kubeconfigFor('viewer');
  await using dashboard = await startDashboard(kubeconfig, { allowActions: true });
  await using visited = await visit(browser, dashboard.url);
  const { page, strays } = visited;
  await page.getByText('running 0/2').waitFor();
  await page.getByRole('option', { name: 'dashboard-v1' }).getByText('Restart').waitFor();
  expect(await page.getByText(/^Not shown/).allTextContents()).toEqual([]);
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await page
    .getByText(
      'Refused: the user refit-viewer has no right to patch plans.autopilot.k0sproject.io.',
      { exact: true },
    )
    .waitFor();
  await page.getByRole('option', { name: 'dashboard-v2' }).click();
  await page.getByRole('button', { name: 'Hold…', exact: true }).click();
  await page.getByRole('button', { name: 'Hold the node', exact: true }).click();
  await page
    .getByText('Refused: the user refit-viewer has no right to patch nodes.', { exact: true })
    .waitFor();
  expect(await isPaused()).toBe(false);
  expect(strays).toEqual([]);
});

test('an operator pauses and resumes the plan', async () => {
  await using puppets = await Puppets.create(admin, 'dashboard-o1', 'dashboard-o2');
  await puppets.plan(1);
  await puppets.says('dashboard-o1', 'Restart');
  const kubeconfig = await kubeconfigFor('operator');
  await using dashboard = await startDashboard(kubeconfig, { allowActions: true });
  await using visited = await visit(browser, dashboard.url);
  const { page, strays } = visited;
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await page.getByText('Plan autopilot (id1) is paused.').waitFor();
  expect(await isPaused()).toBe(true);
  await page.getByRole('button', { name: 'Resume', exact: true }).click();
  await page.getByText('Plan autopilot (id1) continues.').waitFor();
  expect(await isPaused()).toBe(false);
  expect(strays).toEqual([]);
});

const PARTIAL = 'dashboard-partial';
const RULES = [
  { apiGroups: ['autopilot.k0sproject.io'], resources: ['plans', 'controlnodes'] },
  { apiGroups: [''], resources: ['nodes'] },
  { apiGroups: ['upgrade.refit.dev'], resources: ['upgradepolicies', 'statusshards'] },
].map((rule) => ({ ...rule, verbs: ['get', 'list', 'watch'] }));

test('a user without some rights sees the rest, and which rights are missing', async () => {
  const rbac = { apiGroup: 'rbac.authorization.k8s.io' };
  const role = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: PARTIAL },
    rules: RULES,
  };
  const binding = {
    ...role,
    kind: 'ClusterRoleBinding',
    rules: undefined,
    roleRef: { ...rbac, kind: 'ClusterRole', name: PARTIAL },
    subjects: [{ ...rbac, kind: 'User', name: PARTIAL }],
  };
  await apply([role, binding].map((object) => stringify(object)).join('---\n'));
  onTestFinished(async () => {
    await kubectlAs('admin', ['delete', 'clusterrole,clusterrolebinding', PARTIAL]);
  });
  await using puppets = await Puppets.create(admin, 'dashboard-p1');
  await puppets.plan(1);
  await puppets.says('dashboard-p1', 'Restart');
  const kubeconfig = await kubeconfigFor('admin');
  await using dashboard = await startDashboard(kubeconfig, { as: PARTIAL });
  await using visited = await visit(browser, dashboard.url);
  const { page, strays } = visited;
  await page.getByRole('option', { name: 'dashboard-p1' }).getByText('Restart').waitFor();
  const notes = (await page.locator('.notes p').allTextContents()).toSorted();
  expect(notes).toEqual([
    expect.stringMatching(
      /^Not shown: noderollouts\.upgrade\.refit\.dev is forbidden: User "dashboard-partial" cannot list/,
    ),
    expect.stringMatching(
      /^Not shown: plans\.upgrade\.cattle\.io is forbidden: User "dashboard-partial" cannot list/,
    ),
  ]);
  expect(strays).toEqual([]);
});
