"""Entries at one place, several sparse dimensions, none."""

CASES = {
    "aten::_to_dense": [
        ({"indices": "i64[1,20]<9", "values": "f32[20,3]", "size": [9, 3]},),
        ({"indices": "i64[2,30]<4", "values": "bf16[30,2]", "size": [4, 4, 2]},),
        ({"indices": "i64[1,40]<9", "values": "i64[40]", "size": [9]}, None, True),
        ({"indices": "i64[1,0]<9", "values": "f32[0,3]", "size": [9, 3]},),
        ({"indices": "i64[2,30]<4", "values": "bool[30]", "size": [4, 4]},),
    ],
}
