/** Tests that reading JSON from nodes, tenants and servers takes time linear in its size, whatever the JSON contains. */
import { expect, test } from 'vitest';
import type { UpdateConfig } from '../../src/api/autopilot/update-config.ts';
import {
  mergeShards,
  PROGRESS_ANNOTATION,
} from '../../src/dialects/autopilot/plan/status-shards/merge.ts';
import { applyPatch } from '../../src/dialects/capi/hooks/updaters/hook-patch.ts';
import { recordOn, STEPS_ANNOTATION } from '../../src/dialects/capi/hooks/updaters/step-record.ts';
import { UPDATE_ANNOTATION, updateOn } from '../../src/dialects/capi/plan/machine-update.ts';
import { etcdAnswer } from '../../src/dialects/kubeadm/host/etcd.ts';
import { reportOn } from '../../src/dialects/kubeadm/plan/kubeadm-signal.ts';
import { readRecord, requestOf } from '../../src/dialects/kubeadm/plan/plan-object.ts';
import * as controls from '../../src/engine/model/controls.ts';
import { orderedRun, RESTART_ANNOTATION } from '../../src/engine/model/runs.ts';
import { conditionsIn } from '../../src/engine/model/written-conditions.ts';
import { PLAN_WINDOWS_ANNOTATION, withPlanWindows } from '../../src/engine/policy/plan-windows.ts';
import { DEFAULT_POLICY } from '../../src/engine/policy/rollout-policy.ts';
import { annotated } from '../../src/kube/resources.ts';
import { agentOf, heartbeatOn } from '../../src/signal/agent-presence.ts';
import { decodeAgentPolicy, decodeReport, decodeSignal } from '../../src/signal/annotations.ts';
import { HOLD_ANNOTATION, holdOn } from '../../src/signal/holds.ts';
import * as names from '../../src/signal/names.ts';
import * as nodeConfiguration from '../../src/signal/node-configuration.ts';
import { decodeDownloadCheck, decodePrefetch } from '../../src/signal/prefetch.ts';
import { statusOf } from '../../src/updates/status.ts';
import { buildPlan } from '../support/builders/plans.ts';
import { buildWorldOf } from '../support/builders/worlds-of-kinds.ts';
import { growthOf } from '../support/growth.ts';

const on = (annotation: string, text: string) => ({
  metadata: { name: 'w1', annotations: { [annotation]: text } },
});

/** All functions that read JSON from other parties, apart from the JSON that the API server has already parsed. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  signal: (text) =>
    decodeSignal({
      [names.SIGNAL_VERSION_ANNOTATION]: 'v2',
      [names.SIGNAL_DATA_ANNOTATION]: text,
    }),
  report: (text) => decodeReport({ [names.REPORT_ANNOTATION]: text }, 'now'),
  'agent policy': (text) => decodeAgentPolicy({ [names.AGENT_POLICY_ANNOTATION]: text }),
  prefetch: (text) => decodePrefetch({ [names.PREFETCH_ANNOTATION]: text }),
  'check of downloads': (text) => decodeDownloadCheck({ [names.DOWNLOAD_CHECK_ANNOTATION]: text }),
  agent: (text) => agentOf(on(names.AGENT_ANNOTATION, text)),
  heartbeat: (text) => heartbeatOn(on(names.HEARTBEAT_ANNOTATION, text)),
  'update of a Machine': (text) => updateOn(on(UPDATE_ANNOTATION, text)),
  conditions: (text) => conditionsIn(text),
  windows: (text) => withPlanWindows(on(PLAN_WINDOWS_ANNOTATION, text), DEFAULT_POLICY),
  'request of kubeadm': (text) => requestOf({ metadata: { name: 'p' }, data: { request: text } }),
  'record of kubeadm': (text) => readRecord({ metadata: { name: 'p' }, data: { rollout: text } }),
  'report of kubeadm': (text) => reportOn(on('upgrade.refit.dev/kubeadm', text)),
  hold: (text) => holdOn(on(HOLD_ANNOTATION, text)),
  retries: (text) => controls.controlsOn(on(controls.RETRY_ANNOTATION, text)),
  attempts: (text) => controls.controlsOn(on(controls.ATTEMPTS_ANNOTATION, text)),
  'open window': (text) => controls.controlsOn(on(controls.OPEN_WINDOW_ANNOTATION, text)),
  restart: (text) => orderedRun(on(RESTART_ANNOTATION, text)),
  'request of a configuration': (text) =>
    nodeConfiguration.configurationRequestOn(on(nodeConfiguration.CONFIGURATION_ANNOTATION, text)),
  'report on a configuration': (text) =>
    nodeConfiguration.configurationReportOn(
      on(nodeConfiguration.CONFIGURATION_REPORT_ANNOTATION, text),
      { uid: 'uid' },
    ),
  'steps of updaters': (text) => recordOn(on(STEPS_ANNOTATION, text), 'id'),
  'counts of a Plan': (text) =>
    mergeShards(annotated(buildPlan(), { [PROGRESS_ANNOTATION]: text }), buildWorldOf()),
  'status of updates': (text) =>
    statusOf(on('upgrade.refit.dev/update-status', text) as UpdateConfig),
  etcd: (text) => etcdAnswer([text, text, text, text]),
  'patch of a hook': (text) =>
    applyPatch({}, { patchType: 'JSONPatch', patch: Buffer.from(text).toString('base64') }),
};

const many = (unit: string, size: number): string => unit.repeat(size / unit.length);

const window = '{"start":"22:00","length":"4h","timeZone":"Europe/Berlin"},';
const member = '{"ID":"10","name":"cp1","clientURLs":["https://127.0.0.1:2379"]},';
const condition = '{"type":"a","status":"True"},';
const command = '{"k0supdate":{"version":"v1.36.3+k0s.0","platforms":{}}},';
const listOf = (units: string): string => `[${units.slice(0, -1)}]`;

/** Members that some reader reads. */
const MEMBERS = ['at', 'run', 'until', 'since', 'by', 'reason', 'id', 'version', 'state'];

/** Each function returns a text of about `size` characters. */
const TEXTS: readonly ((size: number) => string)[] = [
  // These members contain values that can't be converted to a string.
  (size) =>
    `{${MEMBERS.map((name) => `"${name}":${many('[', size / 20)}${many(']', size / 20)}`).join()}}`,
  () => `{${MEMBERS.map((name) => `"${name}":{"toString":1,"valueOf":1}`).join()}}`,
  () =>
    `{"header":{"toString":1},"leader":"1","members":[{"ID":{"toString":1}}],"alarms":[{"alarm":{"toString":1}}]}`,
  () => `{"header":{},"members":[{"clientURLs":[{"toString":1}]}]}`,
  (size) => many('[', size),
  (size) => many('[', size / 2) + many(']', size / 2),
  (size) => many('{"a":', size),
  (size) => `${many('{"a":', size)}1${many('}', size / 5)}`,
  (size) => many(' ', size),
  (size) => `"${many('\\u0000', size)}"`,
  (size) => many('1', size),
  (size) => listOf(many('1,', size)),
  (size) => listOf(many(window, size)),
  (size) => listOf(many(condition, size)),
  (size) => `{"header":{"member_id":"1"},"members":${listOf(many(member, size))}}`,
  (size) => `{"rollout":"a","commands":${listOf(many(command, size))},"policy":${many('[', size)}`,
  (size) => `{"rollout":"a","commands":[],"policy":${many('[', size / 2)}${many(']', size / 2)}}`,
  (size) => `{${Array.from({ length: size / 12 }, (_, at) => `"k${at}":${at}`).join()}}`,
  (size) => listOf(many('{"op":"add","path":"/a","value":{}},', size)),
  (size) => listOf(many('{"op":"copy","from":"","path":"/a"},', size)),
];

test.each(Object.entries(READERS))('%s', (_name, reader) => {
  for (const [at, textOf] of TEXTS.entries()) {
    const read = (size: number): void => {
      try {
        reader(textOf(size));
      } catch (error) {
        // A refusal explains what is wrong. A stack overflow, or a call of something that is not a function, explains
        // nothing.
        expect(error).not.toBeInstanceOf(RangeError);
        expect(error).not.toBeInstanceOf(TypeError);
      }
    };
    // For a text eight times as long, linear work takes eight times as long and quadratic work sixty-four times.
    expect(growthOf(read, 32 * 1024, 8, 28), `text ${at}`).toBeLessThan(28);
  }
});
