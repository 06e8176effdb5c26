/**
 * Keeps an annotation on the object up to date. With this annotation the agent announces itself, so that people and
 * policies see which agent a node has.
 */
import type { KubeClient } from '../../kube/client.ts';
import type { Resource } from '../../kube/resources.ts';
import {
  type AgentPresence,
  encodePresence,
  HEARTBEAT_MS,
  type Heartbeat,
  type KeptAnnouncement,
} from '../../signal/agent-presence.ts';
import { AGENT_ANNOTATION, HEARTBEAT_ANNOTATION, MACHINE_ANNOTATION } from '../../signal/names.ts';
import { rfc3339 } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { defined } from '../../util/json.ts';
import { ownMember } from '../../util/own-member.ts';
import type { Tools } from '../../util/tools.ts';
import { keepDoing, type SignalObject } from './signal-object.ts';

export interface PresenceParts extends Tools {
  readonly client: Pick<KubeClient, 'patch'>;
  readonly resource: Resource;
  readonly object: SignalObject;
  readonly presence: () => Promise<AgentPresence>;
  /** Returns the facts of the kept binary and of the previous bundles as they are now. */
  readonly kept: () => Promise<KeptAnnouncement>;
  /** Returns the bytes that are free for a payload; undefined while that is not known. */
  readonly room: () => Promise<number | undefined>;
}

export interface PresenceKeeper {
  /** Works until `stop` aborts. Never rejects, because the agent can work without the annotation. */
  readonly keep: (stop: AbortSignal) => Promise<void>;
  /**
   * Returns the annotations that announce the agent now. The agent adds them to its last report on a signal, because
   * the upgrade has changed them and a separate write for each node is then unnecessary. The result is empty before the
   * first announcement, or if the agent cannot read which files the host keeps. Never rejects.
   */
  readonly current: () => Promise<Readonly<Record<string, string>>>;
}

/**
 * Milliseconds between two comparisons of the annotation with the host. The agent polls, because nothing signals that k0s was started in
 * another way.
 */
const POLL_MS = 60_000;

/** Returns the functions that announce the agent on its object. */
export function presenceKeeper(parts: PresenceParts): PresenceKeeper {
  const { kept, log } = parts;
  let last: AgentPresence | undefined;
  let reports = 0;
  const onAnnounced = (announced: AgentPresence): void => {
    last = announced;
  };
  return {
    async keep(stop) {
      await keepPresence({ ...parts, onAnnounced, reports: () => reports }, stop);
    },
    async current() {
      if (last === undefined) return {};
      const { kept: _kept, keptBundle: _keptBundle, ...known } = last;
      // Only the facts about the kept files are read again. The other facts may need requests, and the report must not
      // wait for requests.
      const isKeeper = last.aside !== true && last.procedure === undefined;
      reports++;
      try {
        const facts = isKeeper ? await kept() : {};
        return { [AGENT_ANNOTATION]: encodePresence({ ...known, ...facts }) };
      } catch (error) {
        log.warn(
          'cannot read which files the host keeps for a roll-back, so the report omits them',
          {
            reason: messageOf(error),
          },
        );
        return {};
      } finally {
        reports++;
      }
    },
  };
}

interface AnnouncementParts extends PresenceParts {
  readonly onAnnounced: (announced: AgentPresence) => void;
  /** Returns a number that changes when `current` begins, and when it ends. */
  readonly reports: () => number;
}

async function keepPresence(parts: AnnouncementParts, stop: AbortSignal): Promise<void> {
  const { client, resource, object, presence, log, onAnnounced, reports } = parts;
  const heartbeat = heartbeats(parts);
  const announce = async (): Promise<number> => {
    const { newest } = object;
    const found = newest?.metadata.annotations ?? {};
    const before = reports();
    const said = await presence();
    const annotations = {
      [AGENT_ANNOTATION]: encodePresence(said),
      // Each heartbeat is a write. So the agent sends heartbeats only in two cases: if Cluster API needs them, or if
      // the leader of a plan may wait because this host refuses cgroup v1.
      ...((MACHINE_ANNOTATION in found || said.cgroupV1 === 'refused') && {
        [HEARTBEAT_ANNOTATION]: await heartbeat(said.since),
      }),
    };
    // `current` was called in the meantime, so a report with a newer announcement may have been written, and this patch
    // would overwrite it. If the report was written, the object has changed, and the agent compares the annotations
    // again at once. If it was not written, the agent compares them after the pause.
    if (reports() !== before) return POLL_MS;
    if (
      newest !== undefined &&
      Object.entries(annotations).some(([name, text]) => ownMember(found, name) !== text)
    )
      await client.patch(
        resource,
        newest.metadata.name,
        { metadata: { annotations } },
        { type: 'merge', abort: stop },
      );
    if (newest !== undefined) onAnnounced(said);
    return POLL_MS;
  };
  const tell = (error: unknown, pauseMs: number): void =>
    log.warn('cannot announce the agent on its object', { reason: messageOf(error), pauseMs });
  await keepDoing(announce, tell, { base: 1_000, cap: 600_000 }, parts, stop);
}

/**
 * Returns a function that builds the value of the heartbeat annotation. The interval is counted from the start of the
 * agent, so that the agents of many nodes do not write at the same moment.
 */
function heartbeats({
  clock,
  room,
}: Pick<PresenceParts, 'clock' | 'room'>): (since: string) => Promise<string> {
  const start = clock.now();
  let last = { at: '', text: '' };
  return async (since) => {
    const at = rfc3339(start + Math.floor((clock.now() - start) / HEARTBEAT_MS) * HEARTBEAT_MS);
    if (last.at !== at)
      last = {
        at,
        text: JSON.stringify(defined({ at, room: await room(), since }) satisfies Heartbeat),
      };
    return last.text;
  };
}
