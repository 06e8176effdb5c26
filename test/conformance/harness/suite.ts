/** Turns each case into a test: runs the case against both servers and compares the answers. */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { type ApiServer, startApiServer } from '../../../sandbox/api-server/api-server.ts';
import { controlPlane, kubeconfigFor } from '../../testenv/control-plane.ts';
import type { Step } from './case.ts';
import { normalise } from './normalise.ts';
import { type Names, runCase } from './run-case.ts';
import { type Credentials, connect, type Wire } from './wire.ts';

/**
 * An object that the cases of a file share. It is created on both servers before the first case, and removed after the
 * last case.
 */
export interface Fixture {
  readonly path: string;
  readonly object: unknown;
  /** The path of a GET. The suite waits until the server answers this GET with 200. */
  readonly ready?: string;
}

/** Milliseconds within which a fixture must be served. */
const PATIENCE = { timeout: 150_000, interval: 200 };

const NAMESPACES = '/api/v1/namespaces';

/**
 * Registers a test that sends the steps to both servers and compares the answers. The test is skipped if there is a
 * reason `whyNot`.
 */
type TestCase = (name: string, steps: readonly Step[], whyNot?: string) => void;

/**
 * Prepares a file of cases. `subject` is the prefix for the names of the file's objects on the servers, and must be
 * unique. Fixtures may use `$group`. Call the returned function once for each case. `vitest list` finds the cases
 * without any server.
 */
export function conformance(subject: string, fixtures: readonly Fixture[] = []): TestCase {
  const group = `${subject}.conformance.example.com`;
  const wires: Wire[] = [];
  let sandbox: ApiServer;
  let cases = 0;

  beforeAll(async () => {
    sandbox = await startApiServer();
    wires.push(connect('embedded', sandbox.url), await connectReal());
    await Promise.all(wires.map(async (wire) => await furnish(wire, fixtures, group)));
  });

  afterAll(async () => {
    await Promise.all(wires.map(async (wire) => await clear(wire, fixtures, group)));
    for (const wire of wires) wire.close();
    await sandbox.stop();
  });

  return (name, steps, whyNot) => {
    const id = `${subject}-${cases++}`;
    let attempts = 0;
    test.concurrent(name, async ({ skip }) => {
      if (whyNot !== undefined) skip(whyNot);
      // The objects of a failed attempt stay, so the next attempt needs other names.
      const own = attempts++ === 0 ? id : `${id}-${attempts}`;
      const names = { ns: own, id: own, group };
      const [found, wanted] = await Promise.all(
        wires.map(async (wire) => await inNamespace(wire, names, steps)),
      );
      expect(found).toEqual(wanted);
      expect(wanted?.length).toBeGreaterThan(0);
    });
  };
}

/**
 * Creates the case's namespace if the case uses it. The namespace stays until the control plane ends, because a real
 * cluster sends some hundred requests to remove a namespace.
 */
async function inNamespace(wire: Wire, names: Names, steps: readonly Step[]): Promise<unknown[]> {
  const text = JSON.stringify(steps);
  if (!text.includes('$ns')) return normalise(await runCase(steps, wire, names));
  await create(wire, NAMESPACES, { metadata: { name: names.ns } });
  // A real cluster accepts no pods without this account. The sandbox has no such accounts.
  if (wire.name === 'real' && text.includes('/pods')) await addServiceAccount(wire, names.ns);
  return normalise(await runCase(steps, wire, names));
}

async function addServiceAccount(wire: Wire, namespace: string): Promise<void> {
  const path = `${NAMESPACES}/${namespace}/serviceaccounts`;
  await wire.send({
    method: 'POST',
    path,
    body: JSON.stringify({ metadata: { name: 'default' } }),
  });
}

async function create(wire: Wire, path: string, object: unknown): Promise<void> {
  const { code, body } = await wire.send({ method: 'POST', path, body: JSON.stringify(object) });
  if (code !== 201)
    throw new Error(`${wire.name} answers ${code} to POST ${path}: ${JSON.stringify(body)}`);
}

async function furnish(wire: Wire, fixtures: readonly Fixture[], group: string): Promise<void> {
  for (const { path, object, ready } of fixtures) {
    await create(wire, path, JSON.parse(JSON.stringify(object).replaceAll('$group', group)));
    const probe = ready?.replaceAll('$group', group);
    if (probe === undefined) continue;
    await vi.waitFor(
      async () => expect((await wire.send({ method: 'GET', path: probe })).code).toBe(200),
      PATIENCE,
    );
  }
}

async function clear(wire: Wire, fixtures: readonly Fixture[], group: string): Promise<void> {
  for (const { path, object } of fixtures.toReversed()) {
    const { name } = (object as { metadata: { name: string } }).metadata;
    await wire.send({ method: 'DELETE', path: `${path}/${name.replaceAll('$group', group)}` });
  }
}

/** The administrator's kubeconfig contains the credentials in base64. */
export async function connectReal(): Promise<Wire> {
  const kubeconfig = parse(await readFile(await kubeconfigFor('admin'), 'utf8')) as {
    clusters: [{ cluster: Record<string, string> }];
    users: [{ user: Record<string, string> }];
  };
  const pem = (text = ''): string => Buffer.from(text, 'base64').toString();
  const { cluster } = kubeconfig.clusters[0];
  const { user } = kubeconfig.users[0];
  const credentials: Credentials = {
    ca: pem(cluster['certificate-authority-data']),
    cert: pem(user['client-certificate-data']),
    key: pem(user['client-key-data']),
  };
  return connect('real', controlPlane().url, credentials);
}
