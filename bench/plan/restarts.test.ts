/** Tests which times of a restart count as `down` and as `start`, with a host and a clock that the test controls. */
import { expect, onTestFinished, test } from 'vitest';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { Restarts } from './restarts.ts';

interface Answering {
  starts: number;
  isUp: boolean;
}

function observe() {
  const clock = new FakeClock();
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const service: Answering = { starts: 1, isUp: true };
  const host = {
    name: 'a',
    get starts() {
      return service.starts;
    },
    version: async () =>
      await (service.isUp ? Promise.resolve('v1') : Promise.reject(new Error('nobody answers'))),
  };
  const restarts = new Restarts(clock, stop.signal);
  const end = (): void => {
    service.isUp = false;
    restarts.note('a', false);
  };
  const start = (): void => {
    service.starts++;
    restarts.note('a', true);
  };
  return { clock, stop, service, host, restarts, end, start };
}

test('down from the end to the next start, starting until the first answer', async () => {
  const { clock, service, host, restarts, end, start } = observe();
  restarts.follow([host]);
  end();
  await clock.advance(10_000);
  start();
  await clock.advance(205);
  expect(restarts.of('a')).toBeUndefined();
  service.isUp = true;
  await clock.advance(20);
  expect(restarts.of('a')).toEqual({ down: 10_000, start: 210 });
  expect(clock.pending).toBe(0);
});

test('a first start is no restart, and neither is what happened before somebody followed', async () => {
  const { clock, host, restarts, end, start } = observe();
  restarts.note('a', true);
  end();
  restarts.follow([host]);
  start();
  await clock.advance(1_000);
  expect(restarts.of('a')).toBeUndefined();
});

test('of several starts the one that answers counts, with the time down before it', async () => {
  const { clock, service, host, restarts, end, start } = observe();
  restarts.follow([host]);
  end();
  await clock.advance(100);
  start();
  await clock.advance(50);
  end();
  await clock.advance(300);
  service.isUp = true;
  start();
  await clock.advance(10);
  expect(restarts.of('a')).toEqual({ down: 300, start: 0 });
});

test('nobody is asked any more once it is over', async () => {
  const { clock, stop, host, restarts, end, start } = observe();
  restarts.follow([host]);
  end();
  start();
  await clock.advance(50);
  stop.abort();
  await clock.advance(50);
  expect(clock.pending).toBe(0);
});
