/**
 * Owns the mark in the status of a Plan whose targets stand in status shards: words for people, in the description of the first
 * command, that name the status shards. It stands in the status, and nowhere else, since only there it is written in the same
 * instant as what it speaks of. The counts in it make every record another version of the plan.
 */
import type { CommandStatus, Plan } from '../../../api/autopilot/plan.ts';

/** The status shards of a plan: `<prefix>-0` and so on. */
export interface Mark {
  readonly prefix: string;
  readonly shards: number;
}

export interface Counts {
  readonly total: number;
  readonly done: number;
  readonly failed: number;
}

const MARK = /(?:^|; )\d+ of \d+ targets are done, \d+ failed: see (\d+) StatusShards ([a-z0-9.-]+)$/;

export function markOf({ status }: Plan): Mark | undefined {
  const [, shards, prefix] = MARK.exec(status?.commands[0]?.description ?? '') ?? [];
  return prefix === undefined ? undefined : { prefix, shards: Number(shards) };
}

/** The description without the mark; undefined where it says nothing else. */
export function textBesideMark({ description }: CommandStatus): string | undefined {
  return description?.replace(MARK, '') || undefined;
}

export function withMark(plan: Plan, { prefix, shards }: Mark, { total, done, failed }: Counts): Plan {
  if (!plan.status) return plan;
  const mark = `${done} of ${total} targets are done, ${failed} failed: see ${shards} StatusShards ${prefix}`;
  const commands = plan.status.commands.map((command, index) => {
    if (index > 0) return command;
    const text = textBesideMark(command);
    return { ...command, description: text === undefined ? mark : `${text}; ${mark}` };
  });
  return { ...plan, status: { ...plan.status, commands } };
}

export function shardName({ prefix }: Mark, index: number): string {
  return `${prefix}-${index}`;
}
