/** Carries out one call within its deadline, from reading the credentials to parsing the answer. */
import type { IncomingMessage } from 'node:http';
import { systemClock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import type { Call, Caller } from '../client.ts';
import type { ClusterConfig } from '../config/cluster-config.ts';
import { AnswerError } from '../status-error.ts';
import { assertExpected, isAboutSecrets, parseAnswer, readText } from './answer.ts';
import { type RequesterOptions, senderTo } from './call-sender.ts';
import { jsonLines } from './json-lines.ts';
import { type TimeLimit, timeLimit } from './time-limit.ts';

/** The largest event of a watch in bytes. Servers store objects of at most about 3 MB. */
const MOST_EVENT_BYTES = 16 * 1024 * 1024;
/** Returns a caller for the connection. Close it when it is no longer needed. */
export function requesterTo(config: ClusterConfig, options: RequesterOptions): Caller {
  const { clock = systemClock, mostBytes = 128 * 1024 * 1024 } = options;
  const closed = new AbortController();
  const sender = senderTo(config, options, closed.signal);
  const begin = (call: Call): TimeLimit => {
    const limit = timeLimit(clock, call.abort, closed.signal);
    limit.allow(call.deadlineMs, `no answer within ${formatDuration(call.deadlineMs)}`);
    return limit;
  };
  const allowedTo = (call: Call): number => Math.min(mostBytes, call.mostBytes ?? mostBytes);
  const within = async <T>(call: Call, work: (limit: TimeLimit) => Promise<T>): Promise<T> => {
    using limit = begin(call);
    try {
      return await work(limit);
    } catch (error) {
      throw sender.failure(call, limit, error);
    }
  };
  return {
    text: async (call) =>
      await within(call, async (limit) => {
        const response = await sender.open(call, limit);
        return {
          status: response.statusCode ?? 0,
          body: await readText(response, allowedTo(call)),
        };
      }),
    json: async <T>(call: Call) =>
      await within(call, async (limit) => {
        const response = await sender.openOrThrow(call, limit);
        const answer = parseAnswer(call, response, await readText(response, allowedTo(call)));
        assertExpected(call, answer);
        return answer as T;
      }),
    async *stream<T>(call: Call, idleMs: number) {
      using limit = begin(call);
      try {
        const response = await sender.openOrThrow(call, limit);
        for await (const value of jsonLines(alive(response, limit, idleMs), MOST_EVENT_BYTES)) {
          assertExpected(call, value);
          yield value as T;
        }
      } catch (error) {
        const isOdd = error instanceof SyntaxError;
        const thrown = isOdd
          ? new AnswerError(
              'the watch is not JSON',
              // The error of JSON.parse quotes the text.
              isAboutSecrets(call) ? {} : { cause: error },
            )
          : error;
        throw sender.failure(call, limit, thrown);
      }
    },
    close() {
      closed.abort();
      sender.close();
    },
  };
}

/** Yields the chunks of a watch. After each chunk the limit starts again with `idleMs`. */
async function* alive(
  response: IncomingMessage,
  limit: TimeLimit,
  idleMs: number,
): AsyncGenerator<Buffer> {
  const whenIdle = `the watch sent nothing for ${formatDuration(idleMs)}`;
  const onChunk = (): void => limit.allow(idleMs, whenIdle);
  onChunk();
  for await (const chunk of response as AsyncIterable<Buffer>) {
    onChunk();
    yield chunk;
  }
}
