/** Follows the UpdateConfigs of `examples/` until a leader creates the Plan that each of them describes. */
import { readFileSync } from 'node:fs';
import { beforeEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import {
  beginAnew,
  follow,
  lead,
  MINUTE,
  runs,
  START,
  serve,
  world,
} from '../../test/support/builders/update-leaders.ts';
import { PLAN_NAME, plans } from '../api/autopilot/plan.ts';
import type { UpdateConfig } from '../api/autopilot/update-config.ts';

const INDEXES = 'test/fixtures/updates';

beforeEach(beginAnew);

const creations = (): number =>
  world.api.calls.filter((call) => call === `create plans/${PLAN_NAME}`).length;

/**
 * `begins` is the first moment at which a leader creates a Plan. START is a Friday, 00:00 UTC. Windows and schedules of the
 * examples are in UTC or in the time of Berlin, which is one hour ahead in January.
 */
test.each<[example: string, index: string, path: string, begins: string, kinds: readonly string[]]>(
  [
    [
      'update-config-edge',
      'public-edge-release',
      '/edge_release/index.yaml',
      '2027-01-06T14:00:00Z',
      ['k0supdate'],
    ],
    [
      'update-config-cron',
      'public-stable',
      '/stable',
      '2027-01-03T02:00:00Z',
      ['airgapupdate', 'k0supdate'],
    ],
    // The window opens at 01:00 in Berlin; the lead time is two hours.
    ['update-config', 'public-stable', '/stable/index.yaml', '2027-01-01T22:00:00Z', ['k0supdate']],
  ],
)(
  '%s.yaml: the leader creates the Plan at its planned time and not a minute earlier',
  async (example, index, path, begins, kinds) => {
    const text = readFileSync(`examples/k0s/${example}.yaml`, 'utf8');
    const { spec, metadata } = parse(text) as UpdateConfig;
    const asked = new Set<string>();
    const server = await serve(({ url }, response) => {
      asked.add(url.replace(/\?.*/, ''));
      response.end(readFileSync(`${INDEXES}/${index}.yaml`));
    });
    runs('v1.29.3+k0s.0');
    follow(server, { ...spec, updateServer: server }, metadata.annotations);
    const leader = lead();
    await leader.follow();
    await world.clock.advance(Date.parse(begins) - START - MINUTE);
    await leader.follow();
    expect(creations()).toBe(0);
    await world.clock.advance(MINUTE);
    await leader.follow();
    expect(creations()).toBe(1);
    const { commands } = world.api.read(plans, PLAN_NAME).spec;
    expect([...asked]).toEqual([path]);
    expect(commands.flatMap((command) => Object.keys(command))).toEqual(kinds);
    for (const [at, { airgapupdate, k0supdate }] of commands.entries()) {
      const update = airgapupdate ?? k0supdate;
      expect(update?.version).toBe('v1.29.4+k0s.0');
      expect(Object.keys(update?.platforms ?? {})).toContain('linux-amd64');
      expect({ airgapupdate, k0supdate }).toMatchObject(spec.planSpec?.commands[at] ?? {});
    }
  },
);
