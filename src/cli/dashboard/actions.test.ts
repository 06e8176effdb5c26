/** Shows that each action reaches the command of its name and the plan that it names, and what the page then shows. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { createNode, installDefinitions } from '../../../sandbox/cluster/objects.ts';
import { startSandboxPlane } from '../../../sandbox/cluster/plane.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { plans } from '../../api/autopilot/plan.ts';
import { DIALECTS } from '../../dialects/registry.ts';
import { loadClusterConfig } from '../../kube/config/kubeconfig.ts';
import { createClient } from '../../kube/transport/http-client.ts';
import { systemClock } from '../../util/clock.ts';
import { plainOutput } from '../output.ts';
import { carryOut } from './actions.ts';
import type { ActionRequest, ActionResult } from './state.ts';

let act: (request: ActionRequest) => Promise<ActionResult>;

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'refit-actions-'));
  const plane = await startSandboxPlane(folder);
  const kubeconfig = await plane.kubeconfig('admin');
  using client = createClient(await loadClusterConfig({ path: kubeconfig }), { userAgent: 'test' });
  await installDefinitions(client, systemClock);
  await createNode(client, 'w1', {});
  const k0supdate = buildUpdate({ targets: { workers: listed('w1') } });
  const { metadata, ...rest } = buildPlan({ commands: [{ k0supdate }] });
  await client.create(plans, { ...rest, metadata: { name: metadata.name } });
  const abort = new AbortController().signal;
  const parts = { dialects: DIALECTS, clock: systemClock, output: plainOutput, abort };
  act = async (request) => await carryOut(request, { kubeconfig }, parts);
  return async () => {
    await plane.stop();
    await rm(folder, { recursive: true });
  };
});

const plan = 'autopilot//autopilot';

test.each<[ActionRequest, boolean, RegExp]>([
  [{ action: 'pause', plan }, true, /^Plan autopilot \(id1\) is paused\.\n/],
  [{ action: 'resume', plan }, true, /^Plan autopilot \(id1\) continues\.\n/],
  [{ action: 'hold', node: 'w1', reason: 'disk' }, true, /^w1 is held by .*: disk\. No plan/],
  [
    { action: 'hold', node: 'w1' },
    true,
    /^w1 is held by .*finishes\.\nThis replaces the hold by \S+ until refit unhold w1: disk\.$/,
  ],
  [{ action: 'unhold', node: 'w1' }, true, /^w1 is not held any more/],
  [{ action: 'hold', node: 'w9' }, false, /^REFIT_CONTROL: there is no Node or ControlNode w9/],
  [{ action: 'retry', plan, node: 'w1' }, false, /^REFIT_CONTROL: w1 of Plan .* has not failed/],
  [{ action: 'approve', plan, wave: 2 }, false, /^REFIT_CONTROL: the plan has no waves/],
  [{ action: 'pause', plan: 'cattle/a/b' }, false, /^REFIT_CONTROL: there is no plan cattle\/a\/b/],
  [
    { action: 'abort', plan, reason: 'wrong', isConfirmed: true },
    true,
    /^Plan autopilot \(id1\) is aborted: wrong\.\n/,
  ],
])('%j', async (request, isDone, text) => {
  const result = await act(request);
  expect({ isDone: result.isDone, text: result.lines.join('\n') }).toEqual({
    isDone,
    text: expect.stringMatching(text) as unknown,
  });
});
