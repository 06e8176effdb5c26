/** Tests restarts under OpenRC itself: with a real supervise-daemon, in its own jail. */
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { leftOut } from '../support/left-out.ts';
import { runInJail, whyNoOpenRc } from './openrc/jail.ts';

const why = whyNoOpenRc();

interface Seen {
  readonly tookMs: number;
  readonly respawnDelayMs: number;
  readonly isBesideLeftAlone: boolean;
  readonly saidWhileWaiting: number;
  readonly isSupervised: boolean;
  readonly said: readonly { readonly msg: string; readonly of?: string }[];
}

if (why === undefined) describe('under OpenRC', suite);
else leftOut('under OpenRC', why);

function suite(): void {
  let seen: Seen;
  beforeAll(() => {
    const inside = join(import.meta.dirname, 'openrc', 'inside.ts');
    const { status, stdout, stderr } = runInJail([process.execPath, inside], 100_000);
    expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
    seen = JSON.parse(stdout) as Seen;
  });

  test('under OpenRC, a restarted service starts at once and does not wait for the respawn delay', () => {
    expect(seen.tookMs).toBeLessThan(seen.respawnDelayMs / 2);
    expect(seen.said[0]).toMatchObject({ msg: 'restart ordered', of: 'OpenRC service k0sworker' });
  });

  test('what needs the service, as an agent may, is not restarted with it', () => {
    expect(seen.isBesideLeftAlone).toBe(true);
  });

  test('a supervisor that is about to start the service is not disturbed', () => {
    expect(seen.saidWhileWaiting).toBe(1);
  });

  test('where the supervisor has given up, the service is started again under another', () => {
    expect(seen.isSupervised).toBe(true);
    expect(seen.said).toHaveLength(2);
  });
}
