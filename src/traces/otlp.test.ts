/** Tests the encoding against the example that opentelemetry-proto publishes. */
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { exportRequest, type Span } from './otlp.ts';

const SPAN: Span = {
  traceId: '5b8efff798038103d269b633813fc60c',
  spanId: 'eee19b7ec3c1b174',
  parentSpanId: 'eee19b7ec3c1b173',
  name: "I'm a server span",
  from: 1_544_712_660_000,
  to: 1_544_712_661_000,
  attributes: { 'my.span.attr': 'some value' },
};

/** Changes hex digits to lower case, because receivers must accept both cases as equal. */
function normal(_key: string, value: unknown): unknown {
  if (typeof value === 'string' && /^[0-9A-F]{16}(?:[0-9A-F]{16})?$/.test(value))
    return value.toLowerCase();
  return value;
}

test('the published example, except for what it leaves out', async () => {
  const text = await readFile('test/fixtures/otlp/trace.json', 'utf8');
  // These times in nanoseconds have more digits than a JavaScript number can hold.
  const quoted = text.replaceAll(/"(\w+UnixNano)": (\d+)/g, '"$1": "$2"');
  const example: unknown = JSON.parse(quoted, normal);
  const ours = exportRequest([SPAN], { 'service.name': 'my.service' }, '1.0.0');
  const scope = { name: 'refit', version: '1.0.0' };
  const expected = structuredClone(example) as {
    resourceSpans: { scopeSpans: { scope: object; spans: object[] }[] }[];
  };
  for (const { scopeSpans } of expected.resourceSpans)
    for (const each of scopeSpans) {
      each.scope = scope;
      each.spans = each.spans.map((span) => ({ ...span, kind: 1, events: [] }));
    }
  expect(ours).toEqual(expected);
});

test('values have their types, and no attribute is undefined', () => {
  const attributes = { text: 'a', whole: 3, part: 0.5, flag: false, none: undefined };
  const spans = [{ ...SPAN, attributes, status: { isGood: false, message: 'it failed' } }];
  expect(exportRequest(spans, {}, '1')).toMatchObject({
    resourceSpans: [
      {
        scopeSpans: [
          {
            spans: [
              {
                attributes: [
                  { key: 'text', value: { stringValue: 'a' } },
                  { key: 'whole', value: { intValue: '3' } },
                  { key: 'part', value: { doubleValue: 0.5 } },
                  { key: 'flag', value: { boolValue: false } },
                ],
                status: { code: 2, message: 'it failed' },
              },
            ],
          },
        ],
      },
    ],
  });
});

test('an event has its time, and success its code', () => {
  const events = [{ name: 'wait', at: 1, attributes: {} }];
  const text = JSON.stringify(
    exportRequest([{ ...SPAN, events, status: { isGood: true } }], {}, '1'),
  );
  expect(text).toContain('"events":[{"timeUnixNano":"1000000","name":"wait","attributes":[]}]');
  expect(text).toContain('"status":{"code":1}');
});
