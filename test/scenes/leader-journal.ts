/** Records what the leader of a scene does: the writes of its turns, and the messages that it would send to people. */

import { notificationsOf, type Told, toldOf } from '../../src/engine/report/notifications.ts';
import type { Notifier } from '../../src/engine/report/notifier.ts';
import type { Call, Caller } from '../../src/kube/client.ts';
import { type Clock, rfc3339 } from '../../src/util/clock.ts';
import { aborted } from '../../src/util/waits.ts';

export interface LeaderJournal {
  readonly writes: string[];
  readonly messages: string[];
  /** What people were told about each plan. A leader records it, so that the next leader knows it. */
  readonly told: Map<string, Told>;
}

export function newJournal(): LeaderJournal {
  return { writes: [], messages: [], told: new Map() };
}

/** The resources that a scene shows in another way. */
const SHOWN = /^(?:events|leases|noderollouts)(?:\/|$)/;
const READS = ['get', 'list', 'watch'];

/** Returns the caller, and adds a line to the journal for each write. */
export function withWritesInto({ writes }: LeaderJournal, caller: Caller, clock: Clock): Caller {
  return {
    ...caller,
    async json<T>(call: Call) {
      if (!READS.includes(call.verb) && !SHOWN.test(call.resource))
        writes.push(`${rfc3339(clock.now())} ${call.verb} ${call.resource} ${nameIn(call)}`);
      return await caller.json<T>(call);
    },
  };
}

/** Returns the name of the object that the call writes. */
function nameIn({ verb, resource, path, body }: Call): string {
  if (verb === 'create' && !resource.includes('/')) {
    const { metadata } = body as { readonly metadata: { readonly name: string } };
    return metadata.name;
  }
  const [name = ''] = path.split('/').slice(resource.includes('/') ? -2 : -1);
  return name;
}

/** Returns a notifier that writes each message into the journal, as if each policy had a receiver of all messages. */
export function notifierInto({ messages, told: last }: LeaderJournal): Notifier {
  return {
    name: 'notifications',
    follow(key, { standing }) {
      for (const { at, event, message } of notificationsOf(last.get(key), standing))
        messages.push(`${at} ${event}: ${message}`);
      last.set(key, toldOf(standing));
    },
    forget: () => undefined,
    deliveryOf: () => undefined,
    onChange: () => () => undefined,
    run: async (stop) => await aborted(stop),
  };
}
