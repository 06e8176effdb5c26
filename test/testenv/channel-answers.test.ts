/**
 * Tests how the leader reacts to each unusual answer of a channel: the Event on the UpdateConfig, and whether it
 * creates a Plan.
 */
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import type { Cluster } from '../../sandbox/cluster/cluster.ts';
import { plans } from '../../src/api/autopilot/plan.ts';
import { type UpdateConfig, updateConfigs } from '../../src/api/autopilot/update-config.ts';
import { type Event, events } from '../../src/kube/resources.ts';
import { ifFound } from '../../src/kube/status-error.ts';
import { controlNodes } from '../../src/signal/names.ts';
import { statusOf, statusPatch } from '../../src/updates/status.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { type HttpsMirror, startHttpsMirror } from '../agent/https-mirror.ts';
import type { Script } from '../faults/stub-server.ts';
import { startOwnCluster } from './own-cluster.ts';
import { PATIENCE } from './puppets.ts';

const RUNS = 'v1.36.3+k0s.0';
const NEWER = 'v1.36.4+k0s.0';
const DAY = 86_400_000;
const HASH = { k0sSha256: 'ab'.repeat(32) };
const ALWAYS: NonNullable<UpdateConfig['spec']['upgradeStrategy']> = {
  type: 'periodic',
  periodic: { days: [], startTime: '00:00', length: '24h' },
};

let cluster: Cluster;
let mirror: HttpsMirror;
/**
 * The answers by channel. Each row has its own channel, so that a late check of one row never gets the answer of the
 * next row.
 */
const scripts = new Map<string, Script>();

beforeAll(async () => {
  mirror = await startHttpsMirror((request, response) =>
    scripts.get(request.url.split('/')[1] ?? '')?.(request, response),
  );
  const environment = { K0S_UPDATE_PERIOD: '300ms', ...mirror.trust };
  cluster = await startOwnCluster({
    controllers: 0,
    workers: 0,
    version: RUNS,
    offers: [],
    restartDelayMs: 0,
    environment,
  });
  const apiVersion = 'autopilot.k0sproject.io/v1beta2';
  const kind = 'ControlNode';
  await cluster.client.create(controlNodes, { apiVersion, kind, metadata: { name: 'c1' } });
  const status = { k0sVersion: RUNS, addresses: [] };
  await cluster.client.patch(
    controlNodes,
    'c1',
    { status },
    { type: 'merge', subresource: 'status' },
  );
  await cluster.startController('follower');
});

afterAll(async () => {
  await cluster.client.delete(controlNodes, 'c1');
  await cluster.stop();
  await mirror[Symbol.asyncDispose]();
});

const until = async (check: () => Promise<void>): Promise<void> =>
  await vi.waitFor(check, PATIENCE);
const eventsOn = async (name: string): Promise<Event[]> =>
  (await cluster.client.listAll(events, { fieldSelector: `involvedObject.name=${name}` })).items;

function index(version: string, more: object = HASH, rest: object = {}): string {
  const k0s = `https://127.0.0.1:1/${version}`;
  return JSON.stringify({
    version,
    downloadURLs: [{ os: 'linux', arch: 'amd64', k0s, ...more }],
    ...rest,
  });
}

const says =
  (text: string): Script =>
  (_, response) =>
    response.end(text);
const twoAhead = (between: string | undefined): Script => {
  return ({ url }, response) => {
    if (!url.includes('/v1.37/')) response.end(index('v1.38.0+k0s.0'));
    else response.writeHead(between === undefined ? 404 : 200).end(between);
  };
};
const aByteASecond: Script = (_, response) => {
  const timer = setInterval(() => response.write('x'), 1_000);
  response.on('close', () => clearInterval(timer)).write('x');
};

let count = 0;

/** Creates an UpdateConfig that follows the mirror. Resolves with its name. */
async function follow(
  script: Script,
  annotations = {},
  updateServer = mirror.server.config.server,
): Promise<string> {
  const name = `row-${++count}`;
  scripts.set(name, script);
  const apiVersion = 'autopilot.k0sproject.io/v1beta2';
  const kind = 'UpdateConfig';
  const spec = { updateServer, channel: name, upgradeStrategy: ALWAYS };
  await cluster.client.create(updateConfigs, {
    apiVersion,
    kind,
    metadata: { name, annotations },
    spec,
  });
  onTestFinished(async () => {
    await cluster.client.delete(updateConfigs, name);
    await ifFound(cluster.client.delete(plans, 'autopilot'));
  });
  return name;
}

const checked = (skewMs: number): object => {
  const status = { reason: 'UpToDate', message: '', checkedAt: rfc3339(Date.now() + skewMs) };
  return (statusPatch(status) as { metadata: { annotations: object } }).metadata.annotations;
};

test.each<[string, Script, string, object]>([
  ['has no hash, only https', says(index(NEWER, {})), NEWER, {}],
  [
    'is two minor versions ahead, with one between',
    twoAhead(index('v1.37.2+k0s.0')),
    'v1.37.2+k0s.0',
    {},
  ],
  ['was asked by a leader whose clock was a day ahead', says(index(NEWER)), NEWER, checked(DAY)],
  ['was asked by a leader whose clock was a day behind', says(index(NEWER)), NEWER, checked(-DAY)],
])('a channel that %s: a Plan, and an Event', async (_what, script, version, annotations) => {
  const name = await follow(script, annotations);
  const message = `upgrading from ${RUNS} to ${version}`;
  await until(async () =>
    expect(await eventsOn(name)).toContainEqual(
      expect.objectContaining({ type: 'Normal', reason: 'UpdateStarted', message }),
    ),
  );
  const { spec } = await cluster.client.get(plans, 'autopilot');
  expect(spec.commands[0]?.k0supdate?.version).toBe(version);
  // Otherwise the leader could create the Plan again while its UpdateConfig is being deleted.
  scripts.set(name, says(index(RUNS)));
  await until(async () => {
    await ifFound(cluster.client.delete(plans, 'autopilot'));
    expect(statusOf(await cluster.client.get(updateConfigs, name))?.reason).toBe('UpToDate');
  });
});

test('a release that is too young: no Plan until it has been published for long enough', async () => {
  let asked = 0;
  const published =
    (daysAgo: number): Script =>
    (_, response) => {
      asked++;
      response.end(index(NEWER, HASH, { published: rfc3339(Date.now() - daysAgo * DAY) }));
    };
  const name = await follow(published(1), { 'upgrade.refit.dev/minimum-release-age': '72h' });
  const status = async () => statusOf(await cluster.client.get(updateConfigs, name));
  await until(async () =>
    expect(await status()).toMatchObject({
      reason: 'TooNew',
      message: expect.stringMatching(
        /^v1\.36\.4\+k0s\.0 waits until .*, 72h after it was published, as upgrade\.refit\.dev\/minimum-release-age says$/,
      ),
    }),
  );
  // The leader checks the age of the release again with each answer.
  const before = asked;
  await until(async () => await Promise.resolve(expect(asked).toBeGreaterThan(before + 1)));
  expect(await ifFound(cluster.client.get(plans, 'autopilot'))).toBeUndefined();

  scripts.set(name, published(4));
  await until(async () =>
    expect(
      (await cluster.client.get(plans, 'autopilot')).spec.commands[0]?.k0supdate?.version,
    ).toBe(NEWER),
  );
  // Otherwise the leader could create the Plan again while its UpdateConfig is being deleted.
  scripts.set(name, says(index(RUNS)));
  await until(async () => {
    await ifFound(cluster.client.delete(plans, 'autopilot'));
    expect((await status())?.reason).toBe('UpToDate');
  });
});

test.each<[string, Script, string, RegExp, string?]>([
  [
    'cannot be reached',
    says(''),
    'CheckFailed',
    /^no answer from 127\.0\.0\.1:1: .*ECONNREFUSED/,
    'https://127.0.0.1:1',
  ],
  [
    'lies about the length',
    (_, response) => response.writeHead(200, { 'content-length': 999 }).end(index(NEWER)),
    'CheckFailed',
    /was interrupted/,
  ],
  [
    'sends HTML with 200',
    says('<html>login</html>'),
    'CheckFailed',
    /sent HTML instead of an index/,
  ],
  [
    'offers a download with neither hash nor https',
    says(index(NEWER, { k0s: 'http://127.0.0.1:1/k0s' })),
    'Unverified',
    /the k0s binary of v1\.36\.4\+k0s\.0 for linux-amd64 has neither https nor a sha256/,
  ],
  [
    'offers an older release',
    says(index('v1.36.2+k0s.0')),
    'Downgrade',
    /Refit never downgrades by itself/,
  ],
  [
    'offers a withdrawn release',
    says(index(NEWER, HASH, { withdrawn: { [NEWER]: 'loses data' } })),
    'Withdrawn',
    /release v1\.36\.4\+k0s\.0 was withdrawn: loses data/,
  ],
  [
    'is two minor versions ahead, with nothing between',
    twoAhead(undefined),
    'SkippedMinor',
    /would have to offer a release of v1\.37 first \(.*404/,
  ],
  // This row is the last one, because the next check of its channel also takes 10 s.
  ['sends one byte a second', aByteASecond, 'CheckFailed', /did not finish its answer within 10 s/],
])(
  'a channel that %s: a Warning, and no Plan',
  async (_what, script, reason, message, url = mirror.server.config.server) => {
    const name = await follow(script, {}, url);
    const told = { type: 'Warning', reason, message: expect.stringMatching(message) };
    await until(async () => expect(await eventsOn(name)).toMatchObject([told]));
    // The leader writes the status after the Event.
    await until(async () =>
      expect(statusOf(await cluster.client.get(updateConfigs, name))).toMatchObject({
        reason,
        message: told.message,
      }),
    );
    expect(await ifFound(cluster.client.get(plans, 'autopilot'))).toBeUndefined();
  },
);
