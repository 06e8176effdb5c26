/** Shows that the smallest comes first, whatever the order of coming. */
import { array, assert, integer, property } from 'fast-check';
import { expect, test } from 'vitest';
import { Heap } from './heap.ts';

test('items come out in order', () => {
  assert(
    property(array(integer()), (items) => {
      const heap = new Heap<number>((a, b) => a < b);
      for (const item of items) heap.push(item);
      const popped: (number | undefined)[] = [];
      while (heap.size > 0) {
        const next = heap.peek();
        popped.push(heap.pop());
        expect(popped.at(-1)).toBe(next);
      }
      expect(popped).toEqual(items.toSorted((a, b) => a - b));
      expect(heap.pop()).toBeUndefined();
    }),
  );
});

test('cleared, it is empty', () => {
  const heap = new Heap<number>((a, b) => a < b);
  heap.push(1);
  heap.clear();
  expect(heap.peek()).toBeUndefined();
});
