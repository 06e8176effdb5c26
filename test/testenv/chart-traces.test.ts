/** Tests the effect of the chart's values for traces. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../src/kube/resources.ts';
import { buildTool } from './build-tool.ts';
import { expectHelm, helm } from './helm.ts';

const MINUTE = 60_000;
const LOCAL = 'http://collector.observability:4318';

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-chart-traces-'));
  await buildTool('helm');
}, 15 * MINUTE);
afterAll(async () => await rm(directory, { recursive: true }));

interface Rendered extends KubeObject {
  readonly spec?: {
    readonly template?: {
      readonly spec: { readonly containers: readonly { readonly env?: readonly object[] }[] };
    };
    readonly egress?: readonly { readonly ports: readonly { readonly port: number }[] }[];
  };
}

async function rendered(...values: readonly string[]): Promise<Rendered[]> {
  const text = await expectHelm(directory, ['template', 'refit', 'deploy/chart', ...values]);
  return parseAllDocuments(text).map((document) => document.toJS() as Rendered);
}

async function envOf(...values: readonly string[]) {
  const objects = await rendered(...values);
  return objects.find(({ kind }) => kind === 'Deployment')?.spec?.template?.spec.containers[0]?.env;
}

async function portsOf(...values: readonly string[]) {
  const objects = await rendered(...values);
  const policy = objects.find(({ kind }) => kind === 'NetworkPolicy');
  return policy?.spec?.egress?.[1]?.ports.map(({ port }) => port);
}

test('without an endpoint there is no variable', async () => {
  expect(await envOf()).toBeUndefined();
  expect(await portsOf()).toEqual([443, 6443]);
});

test('the endpoint and the headers of a Secret become variables', async () => {
  const values = [`--set=traces.endpoint=${LOCAL}`, '--set=traces.headers.secret=mine'];
  expect(await envOf(...values)).toEqual([
    { name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: LOCAL },
    {
      name: 'OTEL_EXPORTER_OTLP_HEADERS',
      valueFrom: { secretKeyRef: { name: 'mine', key: 'headers' } },
    },
  ]);
});

test.each([
  [LOCAL, [443, 6443, 4318]],
  ['https://collector.example.com/otlp', [443, 6443]],
  ['http://collector.example.com', [443, 6443, 80]],
])('the network policy lets controllers reach %s', async (endpoint, ports) => {
  expect(await portsOf(`--set=traces.endpoint=${endpoint}`)).toEqual(ports);
});

test('an endpoint with a password is refused', async () => {
  const values = ['--set=traces.endpoint=http://me:secret@collector'];
  const { ok, stderr } = await helm(directory, ['template', 'refit', 'deploy/chart', ...values]);
  expect(ok).toBe(false);
  expect(stderr).toContain('endpoint');
});
