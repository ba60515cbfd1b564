/** Columns of integers: the reader of what `columns.py` writes. Numbers may be larger than 2³¹, so no bit operations on them. */
const decode = (() => {
  const octets = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

  /** The values themselves. */
  function plain(text) {
    const packed = octets(text);
    const values = new Float64Array(packed.reduce((count, octet) => count + (octet < 128 ? 1 : 0), 0));
    let number = 0;
    let weight = 1;
    let place = 0;
    for (const octet of packed) {
      number += (octet % 128) * weight;
      weight *= 128;
      if (octet < 128) {
        values[place++] = number % 2 ? -(number + 1) / 2 : number / 2;
        number = 0;
        weight = 1;
      }
    }
    return values;
  }

  /** Values that were written as differences. */
  function deltas(text) {
    const values = plain(text);
    for (let place = 1; place < values.length; place++) values[place] += values[place - 1];
    return values;
  }

  return { octets, plain, deltas };
})();
