/**
 * Tests that a leader creates Plans from the indexes of the public update server, and that it creates the same Plans as
 * a recorded k0s.
 */
import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  ALWAYS,
  beginAnew,
  follow,
  lead,
  MINUTE,
  reported,
  runs,
  serve,
  world,
} from '../../test/support/builders/update-leaders.ts';
import { PLAN_NAME, type Plan, plans } from '../api/autopilot/plan.ts';
import type { UpdateConfig } from '../api/autopilot/update-config.ts';
import { namespaces } from '../kube/resources.ts';

const FIXTURES = 'test/fixtures/updates';
const PLATFORMS = ['linux-amd64', 'linux-arm', 'linux-arm64'];
const CRON = { type: 'cron' as const, cron: '0 */5 * * * *' };
const ALL = { discovery: { selector: {} } };
/** Bundles for the workers first, then the binaries for everything. */
const WITH_BUNDLES: UpdateConfig['spec']['planSpec'] = {
  commands: [
    { airgapupdate: { workers: ALL } },
    { k0supdate: { targets: { controllers: ALL, workers: ALL } } },
  ],
};

beforeEach(beginAnew);

/** Starts a server that has these texts at these paths. `asked` contains the URLs of its requests. */
async function serving(texts: Readonly<Record<string, string>>) {
  const asked: string[] = [];
  const server = await serve(({ url }, response) => {
    asked.push(url);
    const text = texts[url.replace(/\?.*/, '')];
    if (text === undefined) response.writeHead(404);
    response.end(text);
  });
  return { server, asked };
}

const fixture = (name: string): string => readFileSync(`${FIXTURES}/${name}`, 'utf8');

describe('the public update server', () => {
  const edge = fixture('public-edge-release.yaml');
  const older = fixture('public-edge-release-older.yaml');
  const stable = fixture('public-stable.yaml');

  test.each<[string, string, string, typeof ALWAYS | typeof CRON, string]>([
    ['stable, with a window', 'stable', stable, ALWAYS, '/stable/index.yaml'],
    ['stable, with a schedule', 'stable', stable, CRON, '/stable'],
    ['edge_release, with a window', 'edge_release', edge, ALWAYS, '/edge_release/index.yaml'],
    ['edge_release, with a schedule', 'edge_release', edge, CRON, '/edge_release'],
    ['edge_release in its older form', 'edge_release', older, CRON, '/edge_release'],
  ])('a channel becomes one Plan with a download for each platform: %s', async (...row) => {
    const [_title, channel, text, upgradeStrategy, path] = row;
    const { server, asked } = await serving({ [path]: text });
    runs('v1.29.3+k0s.0');
    follow(`${server}/`, { channel, upgradeStrategy, planSpec: WITH_BUNDLES });
    const leader = lead();
    await leader.follow();
    if (upgradeStrategy === CRON) {
      await world.clock.advance(5 * MINUTE);
      await leader.follow();
    }
    expect(reported()?.message).toBe('upgrading from v1.29.3+k0s.0 to v1.29.4+k0s.0');
    expect(new Set(asked.map((url) => url.replace(/\?.*/, '')))).toEqual(new Set([path]));
    const [bundles, binaries] = world.api.read(plans, PLAN_NAME).spec.commands;
    for (const update of [bundles?.airgapupdate, binaries?.k0supdate]) {
      expect(update?.version).toBe('v1.29.4+k0s.0');
      expect(Object.keys(update?.platforms ?? {}).toSorted()).toEqual(PLATFORMS);
    }
    for (const platform of PLATFORMS) {
      const architecture = platform.replace('linux-', '');
      const file = binaries?.k0supdate?.platforms[platform];
      expect(file?.url).toMatch(new RegExp(`/k0s-v1\\.29\\.4\\+k0s\\.0-${architecture}$`));
      expect(file?.sha256 ?? 'none').toMatch(channel === 'stable' ? /^[0-9a-f]{64}$/ : /^none$/);
      const bundle = bundles?.airgapupdate?.platforms[platform];
      expect(bundle?.url).toMatch(new RegExp(`/k0s-airgap-bundle-.*-${architecture}$`));
    }
  });
});

describe('a recorded k0s', () => {
  interface Recorded {
    readonly updateConfig: UpdateConfig['spec'];
    readonly request: string;
    readonly plan: Plan;
  }

  function indexFor({ plan }: Recorded): string {
    const update = plan.spec.commands[0]?.k0supdate;
    const file = update?.platforms['linux-amd64'];
    const { version = '' } = update ?? {};
    const listed = [{ os: 'linux', arch: 'amd64', k0s: file?.url, k0sSha256: file?.sha256 }];
    const mapped = { k0s: { 'linux-amd64': file?.url } };
    return JSON.stringify({ version, downloadURLs: file?.sha256 ? listed : mapped });
  }

  test.each(['periodic', 'cron'])(
    '%s: Refit sends the request of a recorded k0s and creates a Plan with the same commands',
    async (name) => {
      const recorded = JSON.parse(fixture(`k0s-${name}.json`)) as Recorded;
      const [, path = '', query = ''] = /^GET ([^?]*)\??(.*)$/.exec(recorded.request) ?? [];
      const { server, asked } = await serving({ [path]: indexFor(recorded) });
      const before = new URLSearchParams(query).get('currentVersion') ?? 'v1.36.3+k0s.0';
      const uid = new URLSearchParams(query).get('clusterID') ?? 'cluster';
      world.api.put(namespaces, { metadata: { name: 'kube-system', uid } });
      // The recorded k0s already ran this release, and with a schedule k0s creates a Plan nevertheless. Refit never
      // plans a release that runs, so an older version runs here.
      runs(before.replace('k0s.2', 'k0s.1'));
      const base = new URL(recorded.updateConfig.updateServer ?? '').pathname.replace(/\/$/, '');
      follow(`${server}${base}`, { ...recorded.updateConfig, updateServer: `${server}${base}` });
      const leader = lead();
      await leader.follow();
      await world.clock.advance(10_000);
      await leader.follow();
      expect(`GET ${asked[0]?.replace('k0s.1', 'k0s.2')}`).toBe(recorded.request);
      const made = world.api.read(plans, PLAN_NAME);
      expect(made.metadata.name).toBe(recorded.plan.metadata.name);
      // The API server adds defaults to what k0s sends, so the recorded commands may have more fields.
      expect(recorded.plan.spec.commands).toMatchObject(made.spec.commands);
      expect(made.spec.commands).toHaveLength(recorded.plan.spec.commands.length);
    },
  );
});
